//! A program that fails without a structured error: what the model reads, and what the record keeps.

use std::os::unix::fs::PermissionsExt;

use redial_proto::{CallId, ErrorClass};
use redial_testkit::unique_path;
use redial_worker::{CommandUser, Tool};
use serde_json::Value;

use super::fixture::{Fixture, answer, calls, feedback, says};

/// What a Python program writes whose database is gone.
const TRACE: &str = "Traceback (most recent call last):\nConnectionError: canary-9 db-7.prod.internal:5432 refused";

/// Tools that run one program each: name, shell text, and more lines for the tool and for its command.
fn programs(tools: &[(&str, &str, &str, &str)]) -> Vec<Tool> {
    let entry = |(name, script, tool, command): &(&str, &str, &str, &str)| {
        format!("[[tool]]\nname = \"{name}\"\n{tool}\n[tool.command]\nargv = [\"sh\", \"-c\", {script:?}]\n{command}\n")
    };
    let manifest = unique_path("tools");
    std::fs::write(&manifest, tools.iter().map(entry).collect::<String>()).unwrap();
    let user = CommandUser::own_or_unprivileged().unwrap();
    redial_tools::load_with(&manifest, &user, &|name| std::env::var(name).ok()).unwrap()
}

/// The messages on record: of the call, and of its last attempt.
async fn on_record(fixture: &Fixture, call: CallId) -> (String, String) {
    let query = "SELECT c.message, a.message FROM calls c JOIN attempts a ON a.call_id = c.id AND a.attempt = c.attempt \
                 WHERE c.id = $1";
    sqlx::query_as(query).bind(call.0).fetch_one(fixture.stack.db()).await.unwrap()
}

#[tokio::test]
async fn a_program_that_just_fails_leaves_its_words_to_the_auditor() {
    let script = format!("printf '{TRACE}' >&2; exit 1");
    let tools = programs(&[("report", &script, "effect = \"read\"", ""), ("pay", &script, "", "")]);
    let fixture = Fixture::open(tools).await;
    fixture.small([calls(&[("report", "{}"), ("pay", "{}")]), says("It failed.")]);
    let report = fixture.run("go").await;
    assert_eq!(answer(&report), "It failed.");
    let seen = fixture.seen(1);
    let told: Vec<Value> = seen
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| serde_json::from_str(message["content"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(told[0]["class"], "tool_failed");
    assert_eq!(told[0]["message"], "report failed: the program ended with exit code 1");
    let unknown = told[1]["message"].as_str().unwrap();
    assert!(unknown.starts_with("It is not known whether pay did its work."), "{unknown}");
    let everything = fixture.everything_seen();
    for word in ["canary-9", "db-7", "Traceback", "ConnectionError"] {
        assert!(!everything.contains(word), "a model saw {word}");
    }

    let made = fixture.calls_of(report.task.task).await;
    let states: Vec<_> = made.iter().map(|(_, tool, state, attempts)| (&**tool, &**state, *attempts)).collect();
    assert_eq!(states, [("report", "failed", 1), ("pay", "unknown", 1)], "neither ran twice");
    for (call, ..) in &made {
        let view = fixture.stack.ended(*call).await;
        assert_eq!(view.class, Some(ErrorClass::ToolFailed));
        assert!(!view.message.unwrap().contains("Traceback"));
        let (of_call, of_attempt) = on_record(&fixture, *call).await;
        assert!(of_call.starts_with("the program ended with exit code 1"), "{of_call}");
        let kept = "the program ended with exit code 1: Traceback (most recent call last):\nConnectionError: canary-9 [host] refused";
        assert_eq!(of_attempt, kept);
    }
    fixture.close().await;
}

#[tokio::test]
async fn an_exit_code_is_retried_or_told_as_the_manifest_says() {
    // Each attempt leaves one line more.
    let counted = |then: &str| format!("echo >> \"$PWD/$REDIAL_CALL\"; n=$(wc -l < \"$PWD/$REDIAL_CALL\"); {then}");
    let passing = counted("[ $n -gt 2 ] && echo 3 && exit 0; exit 9");
    let codes = "exit_codes = { 3 = \"business_rule\", 9 = { class = \"unavailable\", effect_possible = false } }";
    let folder = tempfile::tempdir().unwrap();
    // As root, programs run as another user.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let here = format!("folder = {:?}\n", folder.path());
    let shown = format!("{here}stderr_to_model = true\n{codes}");
    let tools = programs(&[
        // Unsafe, and still tried again: the manifest says that nothing was done.
        ("flaky", &passing, "retry = { initial = \"1ms\" }", &format!("{here}{codes}")),
        ("book", "echo 'no seat is left' >&2; exit 3", "effect = \"read\"", &shown),
    ]);
    let fixture = Fixture::open(tools).await;
    fixture.small([calls(&[("flaky", "{}"), ("book", "{}")]), says("Done.")]);
    let report = fixture.run("go").await;
    assert_eq!(answer(&report), "Done.");
    let told = feedback(&fixture.seen(1));
    assert_eq!(told["class"], "business_rule");
    assert_eq!(told["message"], "the program refused the call, with exit code 3: no seat is left");
    let made = fixture.calls_of(report.task.task).await;
    let states: Vec<_> = made.iter().map(|(_, tool, state, attempts)| (&**tool, &**state, *attempts)).collect();
    assert_eq!(states, [("flaky", "succeeded", 3), ("book", "failed", 1)]);
    fixture.close().await;
}
