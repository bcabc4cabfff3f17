//! The client of the Python package `clients/python`, against a real gateway with everything behind it. What it does is in
//! `clients/python/tests/client_of_tests.py`.

use std::{path::Path, time::Duration};

use redial_proto::ToolEffect;
use redial_test_stack::{FaultProxy, Process, Stack, scripted_tool};
use redial_tools::Tool;
use schemars::JsonSchema;
use serde::Deserialize;

use super::python_worker::python;

/// How often connections are cut.
const BETWEEN_CUTS: Duration = Duration::from_millis(150);

#[derive(Deserialize, JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

/// A stack with tools and a model.
async fn stack() -> (Stack, tempfile::TempDir) {
    let mut stack = Stack::start().await;
    let scripted = ToolEffect::ALL.map(|effect| scripted_tool(effect.as_str(), effect, &stack.ledger));
    let add = Tool::new("add", |sum: Sum| async move { sum.a + sum.b }).effect(ToolEffect::Read);
    stack.work(scripted.into_iter().chain([Tool::echo(), add]).collect()).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("script.toml"), SCRIPT).unwrap();
    let models = folder.path().join("models.toml");
    std::fs::write(&models, "[models.small]\nprovider = \"script\"\nscript = \"script.toml\"\n").unwrap();
    stack.serve_models(&models).await;
    (stack, folder)
}

/// Hello, or many calls that end one after the other.
const SCRIPT: &str = r#"
[[rule]]
when = { last = "user", contains = "many calls" }
calls = [
    { name = "read", arguments = { n = 1, before_ms = 100 } },
    { name = "read", arguments = { n = 2, before_ms = 400 } },
    { name = "read", arguments = { n = 3, before_ms = 700 } },
    { name = "read", arguments = { n = 4, before_ms = 1000 } },
    { name = "read", arguments = { n = 5, before_ms = 1300 } },
    { name = "read", arguments = { n = 6, before_ms = 1600 } },
    { name = "read", arguments = { n = 7, fail = "unavailable", times = 2, before_ms = 200 } },
]

[[rule]]
text = "Hello."
delay = "200ms"
"#;

/// Starts a scenario.
fn start(python: &Path, scenario: &str, url: &str) -> Process {
    Process::start(python, |command| {
        python::set_up(command);
        command.args(["tests/client_of_tests.py", scenario]).env("REDIAL_URL", url).env_remove("REDIAL_TOKEN");
    })
}

async fn succeeds(scenario: &Process) {
    let status = scenario.ended().await;
    assert!(status.success() && scenario.output().contains("everything is as it should be"), "{}", scenario.output());
}

#[tokio::test]
async fn every_scenario_ends_as_it_should() {
    let Some(python) = python::find() else { return };
    for scenario in ["calls", "errors", "many", "tasks", "events"] {
        let (stack, _folder) = stack().await;
        let gateway = stack.serve_http().await;
        succeeds(&start(&python, scenario, &gateway.url)).await;
        stack.wait_until_empty().await;
        stack.finish().await;
    }
}

#[tokio::test]
async fn while_connections_are_cut_each_call_is_submitted_once() {
    let Some(python) = python::find() else { return };
    let (stack, _folder) = stack().await;
    let gateway = stack.serve_http().await;
    let (proxy, url) = FaultProxy::before(&gateway.url).await;
    let scenario = start(&python, "hammered", &url);
    let cuts = async {
        let mut ticks = tokio::time::interval(BETWEEN_CUTS);
        loop {
            ticks.tick().await;
            proxy.truncate();
            ticks.tick().await;
            proxy.cut();
        }
    };
    tokio::select! {
        () = succeeds(&scenario) => {}
        () = cuts => {}
    }
    stack.wait_until_empty().await;
    let evidence = stack.finish().await;
    assert_eq!(evidence.calls.len(), 60 + 1500);
}

#[tokio::test]
async fn the_examples_fit_together() {
    let Some(python) = python::find() else { return };
    let stack = Stack::start().await;
    let worker = Process::start(&python, |command| {
        python::set_up(command);
        command.arg(python::example().join("worker.py")).env("REDIAL_NATS_URL", stack.servers.nats_url());
    });
    worker.line("Worker started").await;
    stack.offered(&["count_nights"]).await;
    let gateway = stack.serve_http().await;
    let client = start(&python, "worker_and_client", &gateway.url);
    succeeds(&client).await;
    assert!(client.output().contains("{'nights': 3}"), "{}", client.output());
    stack.wait_until_empty().await;
    worker.terminate();
    assert!(worker.ended().await.success(), "{}", worker.output());
    stack.finish().await;
}
