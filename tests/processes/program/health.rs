//! `redial health`, `/readyz` and `redial dev` while a part does not do its work.

use std::{fs, path::Path, time::Duration};

use redial_proto::{
    Door,
    subjects::{self, Verb},
};
use redial_test_stack::{Process, Stack, until};
use serde_json::Value;

use super::{folder, redial};

#[tokio::test]
async fn what_does_not_answer_is_unhealthy() {
    let mut stack = Stack::start().await;
    let gateway = stack.serve_http().await;
    let servers = [
        ("REDIAL_NATS_URL", stack.servers.nats_url().to_owned()),
        ("REDIAL_DATABASE_URL", stack.servers.database_url().to_owned()),
    ];
    let folder = folder();
    let health = async || {
        let environment = servers.each_ref().map(|(name, value)| (*name, value.as_str()));
        redial(folder.path(), &environment, &["health", "--json"]).await
    };
    let is = async |code: i32, verdict: &str| {
        until(&format!("it ends with {code} and says {verdict:?}"), async || {
            let told = health().await;
            let checks: Value = serde_json::from_str(&told.out).unwrap();
            let says = checks["checks"]["dispatcher"].as_str().unwrap().contains(verdict);
            (told.code == code && says && checks["healthy"] == (code == 0)).then_some(())
        })
        .await;
    };
    is(0, "ok").await;
    let ready = async || {
        let client = redial_http::direct().build().unwrap();
        client.get(format!("{}/readyz", gateway.url)).send().await.unwrap().status().as_u16()
    };

    // The server is well, the table of calls is locked.
    let mut locked = stack.db().begin().await.unwrap();
    sqlx::query("LOCK TABLE calls").execute(&mut *locked).await.unwrap();
    is(1, "no answer").await;
    assert_eq!(ready().await, 503);
    locked.rollback().await.unwrap();
    is(0, "ok").await;

    // Whoever should answer takes requests, and is stopped.
    stack.stop_dispatchers().await;
    let serve = async |door| stack.queue().serve(&subjects::api_of_all(door, Verb::Health), None).await.unwrap();
    let stopped = [serve(Door::Nats).await, serve(Door::Http).await];
    stack.queue().health().await.unwrap();
    is(1, "no answer").await;
    assert_eq!(ready().await, 503);
    drop(stopped);
    stack.finish().await;
}

/// NATS answers, and its streams take nothing: their store was removed beneath it.
#[tokio::test]
async fn jobs_that_cannot_be_published_are_told_everywhere() {
    let folder = folder();
    let dev = Process::start(Path::new(env!("CARGO_BIN_EXE_redial")), |command| {
        command.args(["dev", "--json", "--folder"]).arg(folder.path());
    });
    let ready: Value = serde_json::from_str(&dev.line("\"ready_ms\"").await).unwrap();
    let url = |name: &str| ready[name].as_str().unwrap().to_owned();
    let (nats_url, http_url) = (url("nats_url"), url("http_url"));
    let environment = [("REDIAL_NATS_URL", nats_url.as_str())];
    let run = async |arguments: &[&str]| redial(folder.path(), &environment, arguments).await;
    assert_eq!(run(&["call", "echo", "{}", "--wait"]).await.code, 0);
    assert_eq!(run(&["health"]).await.code, 0);

    fs::remove_dir_all(folder.path().join("nats/jetstream")).unwrap();
    let trouble = "jobs cannot be published since 20";
    until("health says so", async || {
        run(&["call", "echo", "{}"]).await;
        let health = run(&["health"]).await;
        (health.code == 1 && health.out.contains(trouble)).then_some(())
    })
    .await;
    dev.line("Jobs cannot be published; accepted calls wait").await;
    let client = redial_http::direct().build().unwrap();
    let answer = client.get(format!("{http_url}/readyz")).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 503);
    let answer: Value = answer.json().await.unwrap();
    assert_eq!((&answer["ready"], &answer["dispatcher"]), (&false.into(), &"ok".into()));
    assert!(answer["jobs_fail_since"].as_str().is_some_and(|since| since.starts_with("20")), "{answer}");

    // What was accepted meanwhile runs once NATS is there again.
    let addresses: Value = serde_json::from_str(&fs::read_to_string(folder.path().join("dev.json")).unwrap()).unwrap();
    let nats = i32::try_from(addresses["nats_pid"].as_u64().unwrap()).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(nats).unwrap(), rustix::process::Signal::KILL)
        .unwrap();
    dev.line("Published jobs again").await;
    assert_eq!(run(&["call", "echo", "{}", "--wait"]).await.code, 0);
    assert_eq!(run(&["health"]).await.code, 0);
    tokio::time::timeout(Duration::from_mins(1), async {
        dev.interrupt();
        dev.ended().await
    })
    .await
    .unwrap();
}
