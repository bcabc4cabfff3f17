//! Honest users and workers whose login, settings and permissions do not belong together.

use std::process::Stdio;

use redial_queue::QueueConfig;
use redial_test_stack::Process;
use tokio::process::Command;

use super::world::World;

/// A command with the login and settings of a user; its exit code and all its output.
async fn redial(config: &QueueConfig, changed: &[(&str, &str)], arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redial"));
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    command.env("REDIAL_NATS_URL", &config.url).env_remove("REDIAL_DATABASE_URL");
    command.env("REDIAL_NATS_INBOX_PREFIX", config.inbox_prefix.as_deref().unwrap());
    command.env("REDIAL_TENANT", config.tenant.as_str()).env("REDIAL_USER", config.user.as_str());
    command.envs(changed.iter().copied());
    let output = command.output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout) + &*text(&output.stderr))
}

/// A user, what is changed of its settings, what it runs, and the exit code and parts of the output.
type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str], i32, &'a [&'a str]);

#[tokio::test]
async fn a_request_that_the_server_refuses_fails_at_once_and_says_why() {
    let world = World::start().await;
    let call = ["call", "echo", "{}"];
    let no_answers = "set its inbox prefix in nats_inbox_prefix";
    let rows: [Row; 7] = [
        ("globex.rita", &[], &call, 1, &["redial.api.globex.rita.submit.calls.submit", "`redial env`", "[forbidden]"]),
        (
            "acme.sam",
            &[],
            &["call", "echo", "{}", "--wait"],
            1,
            &["the call is on record", "acme.sam.read", "[forbidden]"],
        ),
        ("acme.alice", &[("REDIAL_TENANT", "globex")], &call, 1, &["redial.api.globex.alice.", "[forbidden]"]),
        ("acme.alice", &[("REDIAL_NATS_INBOX_PREFIX", "_INBOX")], &call, 1, &[no_answers, "[forbidden]"]),
        ("acme.alice", &[("REDIAL_NATS_INBOX_PREFIX", "_INBOX")], &["health"], 1, &[no_answers]),
        ("acme.alice", &[], &["health"], 0, &["nats: ok", "jetstream: ", "dispatcher: ok"]),
        ("worker.tools", &[], &["health"], 0, &["nats: ok", "jetstream: ok", "dispatcher: skipped: redial.api."]),
    ];
    for (user, changed, arguments, code, wanted) in rows {
        let (exit, output) = redial(&world.config(user), changed, arguments).await;
        assert_eq!(exit, code, "{user} {changed:?} {arguments:?}: {output}");
        for part in wanted {
            assert!(output.contains(part), "{user} {changed:?} {arguments:?}: {part} in {output}");
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn a_worker_with_settings_of_another_says_what_is_refused() {
    let world = World::start().await;
    let config = world.config("worker.tools");
    let worker = Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
        let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/demo/tools/tools.toml");
        command
            .args(["worker", "--tools", tools, "--command-user", "nobody"])
            .env("REDIAL_NATS_URL", &config.url)
            .env("REDIAL_WORKER_NAME", "rogue");
        command.env("REDIAL_NATS_INBOX_PREFIX", config.inbox_prefix.as_deref().unwrap());
    });
    let said = worker.line("Failed to register the worker").await;
    assert!(said.contains("redial.ctl.rogue.") && said.contains("`redial env`"), "{said}");
    world.stop().await;
}
