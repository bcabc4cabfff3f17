//! No command makes a terminal obey what clients and tools wrote.

use redial_proto::subjects::Intake;
use redial_test_stack::{Reply, until};
use serde_json::{Value, json};

use super::fixture::{Done, Fixture, ended};

/// Clears the screen, sets the title, rewrites the line, hides text, turns text around.
const HOSTILE: &str = "x\u{1b}[2J\u{1b}[8m\u{1b}]0;t\u{7}\rROOT\u{8}\u{7f}\u{9b}31m\u{85}\u{202e}evil\u{2066}\u{200f}\u{200e}\u{61c}\u{e0041}\u{200b}y";

fn is_obeyed(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0041}' | '\u{200b}')
}

fn assert_harmless(arguments: &[&str], done: &Done) {
    for text in [&done.out, &done.err] {
        assert!(!text.contains(is_obeyed), "redial {arguments:?}: {text:?}");
    }
}

#[tokio::test]
async fn what_outsiders_wrote_is_shown_and_not_obeyed() {
    let fixture = Fixture::start(&[("book", "read")]).await;
    let failed = json!({"error": {"message": format!("no {HOSTILE}")}}).to_string();
    // JSON may hold these characters as they are.
    let raw = format!("{{\"note\":\r\"{}\"}}", "a\u{7f}\u{9b}31m\u{202e}b");
    fixture.http.script("/book", [Reply::json(&raw), Reply::status(404).body(failed), Reply::json("1")]);
    let arguments = json!({"city": HOSTILE, HOSTILE: [HOSTILE]}).to_string();
    let waited = ["call", "book", &arguments, "--conversation", "c\u{202e}1", "--wait"];
    let done = fixture.run(&waited).await;
    assert_harmless(&waited, &done);
    let (shown, sent): (Value, Value) = (serde_json::from_str(&done.out).unwrap(), serde_json::from_str(&raw).unwrap());
    assert_eq!(shown, sent, "the same value: {}", done.out);
    let refused = fixture.run(&waited).await;
    assert_harmless(&waited, &refused);
    assert!(refused.err.contains("\\u{1b}[2J") && refused.err.contains("\\u{202e}evil"), "{refused:?}");
    let calls = fixture.calls(&[]).await;
    let wrong = "{\"a\": \"\u{202e}\u{1b}[2J\"";
    let letters = letter_of(&fixture).await;
    let schema = fixture.file("schema.json", &json!({"properties": {HOSTILE: {"enum": [HOSTILE]}}}).to_string());
    for arguments in [
        vec!["show", &calls[1]],
        vec!["show", &calls[1], "--json"],
        vec!["history"],
        vec!["history", "--wide"],
        vec!["history", "--json"],
        vec!["history", "--csv"],
        vec!["dead-letters", "--wide"],
        vec!["dead-letters", "--json"],
        vec!["redrive", "--tool", "book", "--dry-run"],
        vec!["tools", "forget", HOSTILE],
        vec!["actions", "--wide"],
        vec!["check", "--schema", &schema, &arguments],
        vec!["check", "--schema", &schema, &arguments, "--json"],
        vec!["call", HOSTILE, "{}"],
        vec!["call", "book", wrong],
        vec!["show", HOSTILE],
        vec!["history", "--tool", HOSTILE],
        vec![HOSTILE],
        vec!["call", "book", "--agent", HOSTILE],
    ] {
        assert_harmless(&arguments, &ended(fixture.command(&arguments)).await);
    }
    assert!(letters.contains("\\u{1b}"), "{letters}");
}

/// A message that cannot be read becomes a dead letter; what `redial dead-letters` shows of it.
async fn letter_of(fixture: &Fixture) -> String {
    let queue = super::connect(fixture).await;
    let odd = json!({"tool": HOSTILE, HOSTILE: HOSTILE, "timeout_ms": "\u{1b}[2J"}).to_string();
    queue.put_intake(Intake::Calls, odd.into_bytes().into(), None).await.unwrap();
    until("a dead letter", async || {
        let done = fixture.run(&["dead-letters", "--wide"]).await;
        done.out.contains("intake").then_some(done.out)
    })
    .await
}
