//! Exit codes: 0 for success, 1 for a failure, 2 for a usage error.

use redial_proto::ToolEffect;
use redial_test_stack::{Stack, scripted_tool};
use redial_tools::Tool;
use serde_json::Value;

use super::{redial, run_alone};
use crate::audit_commands::fixture::Done;

#[tokio::test]
async fn a_usage_error_names_what_is_allowed() {
    let call = "01936b1c-0000-7000-8000-000000000001";
    let cases: [(&[&str], &str); 15] = [
        (&["nonsense"], "unrecognized subcommand 'nonsense'"),
        (&["call"], "<TOOL>"),
        (&["call", "echo", "--wiat"], "'--wait'"),
        (&["call", "echo", "{}", "--timeout", "5"], "invalid value '5' for '--timeout"),
        (
            &["history", "--state", "asleep"],
            "possible values: ready, running, retry_wait, client_wait, succeeded, failed",
        ),
        (
            &["history", "--argument", "city=Paris"],
            "the pointer does not begin with /; allowed: POINTER=VALUE, such as /city=Paris",
        ),
        (&["history", "--model", "qwen", "--tool", "book"], "cannot be used with"),
        (&["token", "create", "--roles", "root"], "possible values: submit, inline, read, operate, admin, tokens"),
        (&["show", "call 17"], "invalid value 'call 17' for '<ID>': this is no id\nallowed: an id such as 01a20236-"),
        (&["submit", "file", "--batch", "1001"], "'1001' for '--batch <BATCH>': allowed: a number, 1 to 1000\n"),
        (&["history", "--limit", "many"], "'many' for '--limit <N>': allowed: a number, 1 or more\n"),
        (&["call", "echo", "--timeout", "25h"], "'--timeout <DURATION>': \"25h\" is too long; allowed: 1ms to 24h"),
        (&["redrive", "--state", "ready"], "cancel it first; allowed: failed, unknown, cancelled\n"),
        (&["stats", "--since", "9000-01-01"], "this is in the future; allowed: 30m, 2h, 3days"),
        (&["cancel", call, call], "unexpected argument"),
    ];
    for (arguments, wanted) in cases {
        let run = run_alone(arguments).await;
        run.failed(2, &[wanted]);
        let as_json = run_alone(&[arguments, &["--json"]].concat()).await;
        let error: Value = serde_json::from_str(&as_json.err).unwrap();
        assert_eq!((as_json.code, error["error"]["code"].as_str()), (2, Some("invalid_value")), "{}", as_json.err);
    }
    let words = run_alone(&["call", "--json"]).await.err;
    assert!(words.contains(r#""message":"the following required arguments were not provided: <TOOL>"}"#), "{words}");
    let nothing = run_alone(&[]).await;
    assert!(nothing.code == 2 && nothing.err.contains("Usage: redial"), "{}", nothing.err);
}

#[tokio::test]
async fn the_exit_code_of_a_call_depends_on_its_end() {
    let mut stack = Stack::start().await;
    stack.work(vec![Tool::echo(), scripted_tool("tool", ToolEffect::Read, &stack.ledger)]).await;
    let call = async |tool: &str, arguments: &str, more: &[&str]| -> Done {
        let line = [&["call", tool, arguments, "--nats-url", stack.servers.nats_url()], more].concat();
        run_alone(&line).await
    };
    let done = call("echo", r#"{"a" : 1}"#, &["--wait"]).await;
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "{\"a\" : 1}\n", ""));
    let failed = call("tool", r#"{"fail":"auth"}"#, &["--wait"]).await;
    failed.failed(1, &["ended failed after 1 attempt: told to fail with auth [auth]"]);
    call("ehco", "{}", &["--wait"]).await.failed(1, &[r#"did you mean "echo"? [unknown_tool]"#]);
    // The code is the same with --json.
    let unknown = call("ehco", "{}", &["--json"]).await;
    let result: Value = serde_json::from_str(&unknown.out).unwrap();
    assert_eq!((unknown.code, result["status"].as_str()), (1, Some("refused")));
    for more in [[].as_slice(), &["--json"]] {
        let line = [&["task", "Hello.", "--agent", "nobody", "--nats-url", stack.servers.nats_url()], more].concat();
        let run = run_alone(&line).await;
        assert_eq!(run.code, 2, "{line:?}: {} {}", run.out, run.err);
    }
    assert_eq!(call("echo", r#"{"n":1}"#, &["--key", "k"]).await.code, 0);
    let conflict = call("echo", r#"{"n":2}"#, &["--key", "k"]).await;
    assert!(conflict.code == 1 && conflict.err.contains("[idempotency_conflict]"), "{}", conflict.err);
    stack.drained(std::time::Duration::from_secs(10)).await;
    stack.finish().await;
}

/// Without a server.
#[tokio::test]
async fn the_exit_code_of_a_check_depends_on_its_result() {
    let folder = tempfile::tempdir().unwrap();
    let schema = r#"{"properties": {"days": {"type": "integer"}}, "required": ["days"]}"#;
    std::fs::write(folder.path().join("schema.json"), schema).unwrap();
    for (arguments, more, code, out) in [
        ("{'Days': '2'}", "--json", 0, r#"{"outcome":"run","line":1,"arguments":{"days": 2},"#),
        ("{'Days': '2'}", "--no-repairs", 1, "1: feedback [malformed_arguments]"),
        (r#"{"days": "two"}"#, "--no-repairs", 1, "1: feedback [invalid_arguments]\n   /days: \"two\" was sent"),
        ("-", "--json", 0, ""),
    ] {
        let line = ["check", arguments, "--schema", "schema.json", more];
        let run = redial(folder.path(), &[], &line).await;
        let is_empty = out.is_empty() == run.out.is_empty();
        assert!(
            run.code == code && run.out.starts_with(out) && is_empty && run.err.is_empty(),
            "{line:?}: {}",
            run.out
        );
    }
}

#[tokio::test]
async fn unreachable_servers_are_a_failure() {
    let nowhere = ["--nats-url", "nats://127.0.0.1:1", "--database-url", "postgres://redial@127.0.0.1:1/redial"];
    let run = run_alone(&[&["health"], nowhere.as_slice()].concat()).await;
    assert_eq!(run.code, 1);
    assert!(run.out.contains("nats: ") && run.out.contains("postgres: ") && !run.out.contains(": ok"), "{}", run.out);
    assert!(run.out.contains("Connection refused") && run.out.contains("dispatcher: "), "the cause: {}", run.out);
    let call = run_alone(&[&["call", "echo"], &nowhere[..2]].concat()).await;
    assert!(call.code == 1 && call.err.contains("Connection refused"), "{}", call.err);
    assert!(call.err.contains("is it running?") && !call.err.contains("error: error"), "{}", call.err);
}

#[tokio::test]
async fn without_a_dispatcher_commands_say_so_and_what_to_do() {
    let servers = redial_test_stack::Servers::start().await;
    servers.create_database().await;
    let addresses = ["--nats-url", servers.nats_url(), "--database-url", servers.database_url()];
    let call = "01936b1c-0000-7000-8000-000000000001";
    for arguments in [
        ["call", "echo", "--wait"].as_slice(),
        &["task", "hello", "--agent", "a", "--wait"],
        &["cancel", call],
        &["tools", "forget", "echo"],
    ] {
        let run = run_alone(&[arguments, &addresses].concat()).await;
        run.failed(1, &["no dispatcher is running", "`redial dev`"]);
        assert!(!run.err.contains("redial.api") && run.err.lines().count() == 1, "{arguments:?}: {}", run.err);
    }
    for arguments in [["workers"].as_slice(), &["tools"]] {
        let run = run_alone(&[arguments, &addresses].concat()).await;
        assert!(run.code == 0 && run.err.contains("no dispatcher is running"), "{arguments:?}: {}", run.err);
    }
}
