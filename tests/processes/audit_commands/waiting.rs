//! Commands that wait say why nothing happens.

use std::process::Stdio;

use redial_test_stack::{Process, Reply};

use super::{assert_in_order, fixture::Fixture, output::fails_if_nobody_can_read_it, resending::told};

#[tokio::test]
async fn who_waits_learns_that_no_worker_has_the_tool() {
    let fixture = Fixture::start(&[("book", "read")]).await;
    fixture.http.script("/gone", [Reply::json("1")]);
    let url = fixture.http.url("/gone");
    let tools =
        format!("[[tool]]\nname = \"gone\"\neffect = \"read\"\n[tool.http]\nmethod = \"POST\"\nurl = \"{url}\"\n");
    let tools = fixture.file("gone.toml", &tools);
    fixture.file("rules.toml", "[[rule]]\ntext = \"It is done.\"\n");
    let agent = fixture.file("agent.toml", "model = \"absent\"\n");
    let models = fixture.file("models.toml", "[models.absent]\nprovider = \"script\"\nscript = \"rules.toml\"\n");
    let worker = Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
        command.args(["worker", "--nats-url", &fixture.nats_url, "--tools", &tools, "--models", &models]);
    });
    worker.line("Worker started").await;
    fixture.ended("gone", &[]).await;
    let answer = fixture.out(&["task", "Go there.", "--agent-file", &agent, "--wait"]).await;
    assert_eq!(answer, "It is done.\n");
    an_ended_task_is_found(&fixture, &agent).await;
    worker.terminate();
    assert!(worker.ended().await.success());

    for (arguments, tool) in [
        (vec!["call", "gone", "--wait"], "gone"),
        (vec!["task", "Go there again.", "--agent-file", &agent, "--wait"], "model-absent"),
    ] {
        let mut waits = fixture.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let told = told(&mut waits, "for a worker that has the tool").await;
        assert_in_order(&told, &["for a worker that has the tool ", tool, "it has waited"]);
    }
    let at_once = fixture.run(&["call", "gone"]).await;
    assert_eq!(at_once.code, 0, "{at_once:?}");
    assert!(at_once.err.starts_with("no live worker has the tool: the call waits for one"), "{at_once:?}");
}

/// By its first characters, and its turn by the model.
async fn an_ended_task_is_found(fixture: &Fixture, agent: &str) {
    let tasks = fixture.json(&["tasks"]).await;
    let task = tasks[0]["task"].as_str().unwrap();
    // Ids of one moment share less than this.
    let short = &task[..23];
    fixture.shows(&["show", short], &[task, "answer\nIt is done."]).await;
    fixture.shows(&["watch", short], &[task, "It is done.", "answered"]).await;
    let replayed = fixture.run(&["replay", short]).await;
    assert!(replayed.code == 0 && (replayed.out + replayed.err.as_str()).contains("step"), "{task}");
    let turns = fixture.calls(&["--task", short]).await;
    assert_eq!(turns.len(), 1);
    assert_eq!(fixture.calls(&["--model", "absent"]).await, turns);
    let submit: &[&str] = &["task", "Go there.", "--agent-file", agent];
    for arguments in [submit, &["tasks"], &["replay", short], &["watch", short]] {
        fails_if_nobody_can_read_it(fixture, arguments).await;
    }
}
