//! Restarts, lost streams, and faulty providers.

use std::time::Duration;

use redial_proto::{AgentSpec, TaskInput, TaskState};
use redial_test_stack::{Reply, ScriptedHttp, unique_path, until};
use redial_worker::Tool;

use super::fixture::{BIG, Fixture, agent, answer, book_tool, calls, http_tools, says, task};

/// A tool over HTTP that takes a second. The requests to its server show how often it ran.
async fn slow_tool() -> (ScriptedHttp, Vec<Tool>) {
    let server = ScriptedHttp::start().await;
    server.script("/slow", [Reply::json("{\"done\":true}").after(Duration::from_secs(1))]);
    let tools = http_tools(&server, &["slow"], "effect = \"unsafe\"");
    (server, tools)
}

#[tokio::test]
async fn a_task_survives_the_restart_of_every_dispatcher() {
    let (server, tools) = slow_tool().await;
    let mut fixture = Fixture::open(tools).await;
    fixture.small([calls(&[("slow", "{}")]), says("done")]);
    let id = fixture.stack.task(&task("go", agent())).await;
    server.arrived(1).await;
    fixture.stack.stop_dispatchers().await;
    fixture.stack.dispatch().await;
    let report = fixture.stack.task_ended(id).await;
    assert_eq!(answer(&report), "done");
    assert_eq!((server.requests().len(), fixture.asked()), (1, 2), "each tool and each turn ran once");
    fixture.close().await;
}

#[tokio::test]
async fn a_busy_provider_costs_a_retry_and_no_correction() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([Reply::status(429).header("retry-after-ms", "20"), Reply::status(529), says("done")]);
    let report = fixture.run("go").await;
    assert_eq!(answer(&report), "done");
    assert_eq!((report.task.turns, report.task.corrections, fixture.asked()), (1, 0, 3));
    let retries =
        report.steps.iter().filter(|step| matches!(step.input, TaskInput::Retrying { call_index: 0, .. })).count();
    assert_eq!(retries, 2);
    fixture.close().await;
}

#[tokio::test]
async fn the_fallback_model_replaces_one_that_cannot_be_reached() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([Reply::status(503)]);
    fixture.server.script(BIG, [says("here")]);
    let report = fixture.run_as("go", AgentSpec { fallback_model: Some("big".into()), ..agent() }).await;
    assert_eq!(answer(&report), "here");
    fixture.close().await;
}

#[tokio::test]
async fn a_recorded_task_replays_without_a_difference() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([
        calls(&[("book", r#"{"departure_city":"Mars","seats":2}"#), ("nope", "{}")]),
        calls(&[("book", "{'departureCity':'Rome','seats':'2'}")]),
        says("Booked."),
    ]);
    let report = fixture.run("go").await;
    assert_eq!(answer(&report), "Booked.");
    let program = env!("CARGO_BIN_EXE_redial");
    let id = report.task.task.to_string();
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(program)
            .args(arguments)
            .env("REDIAL_NATS_URL", fixture.stack.servers.nats_url())
            .env("REDIAL_DATABASE_URL", fixture.stack.servers.database_url())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, _, stderr) = run(&["replay", &id]);
    assert_eq!(code, Some(0), "{stderr}");
    // A saved record is a regression test: it replays without a difference, and a changed one does not.
    let (_, record, _) = run(&["show", &id, "--json"]);
    let path = unique_path("record");
    std::fs::write(&path, &record).unwrap();
    let file = path.to_str().unwrap();
    let (code, _, stderr) = run(&["replay", "--file", file]);
    assert_eq!(code, Some(0), "{stderr}");
    let changed = ["\"corrections_left\":3", "\"corrections_left\": 3"]
        .iter()
        .fold(record, |record, left| record.replacen(left, &left.replace('3', "1"), 1));
    std::fs::write(&path, changed).unwrap();
    let (code, stdout, _) = run(&["replay", "--file", file]);
    assert_eq!(code, Some(1), "{stdout}");
    fixture.close().await;
}

#[tokio::test]
async fn watchers_get_notices() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([says("done").after(Duration::from_millis(300))]);
    let id = fixture.stack.task(&task("go", agent())).await;
    let mut notices =
        fixture.stack.queue().subscribe(&redial_proto::subjects::task_events("default", id)).await.unwrap();
    fixture.stack.task_ended(id).await;
    until("the notice of the end", async || {
        let notice = notices.next().await?;
        let notice: redial_proto::TaskNotice = serde_json::from_slice(&notice).unwrap();
        (notice.state == TaskState::Succeeded).then_some(())
    })
    .await;
    fixture.close().await;
}
