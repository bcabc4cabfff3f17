//! The text of whole tasks.

use redial_proto::{Message, Role, StoredMessage, TaskReport, TaskState};
use serde_json::json;

use super::*;

fn pipe() -> Page {
    Page::test(None, false)
}

fn render(report: &TaskReport, page: Page) -> String {
    let mut timeline = TaskTimeline::new(&report.task);
    timeline.add_messages(&report.messages);
    let mut text = page.title(&totals::title(&report.task));
    for step in &report.steps {
        text.push_str(&page.event(&timeline.event(step, Printed::default(), Vec::new())));
    }
    text + &page.event(&totals::last(&report.task))
}

#[test]
fn a_task_in_which_everything_happens_in_any_width() {
    let report = sample::report();
    let shown = [None, Some(80), Some(40)].map(|width| render(&report, Page::test(width, false)));
    insta::assert_snapshot!(shown.join("\n----\n\n"));
}

#[test]
fn colours_change_nothing_else() {
    let report = sample::report();
    let coloured = render(&report, Page::test(Some(80), true));
    let mut plain = String::new();
    for (n, piece) in coloured.split('\u{1b}').enumerate() {
        plain.push_str(if n == 0 { piece } else { piece.split_once('m').unwrap().1 });
    }
    assert_ne!(coloured, plain);
    assert_eq!(plain, render(&report, Page::test(Some(80), false)));
}

#[test]
fn rare_events() {
    let mut report = sample::report();
    let problem = "neither Action nor Answer";
    let nudged =
        |asked: &str, time: u32| json!({"decision": "nudged", "problem": problem, "asked": asked, "time": time});
    let read =
        json!({"decision": "answered", "turn": 4, "call_index": 1, "id": "c13_1", "tool": "read_result", "ran": false});
    let accepted = json!({"decision": "accepted", "problem": problem, "refused": 2});
    let steps = [
        (
            json!({"event": "started", "first_seq": 12, "system": false}),
            json!([nudged("answer", 1), nudged("form", 2)]),
        ),
        (
            json!({"event": "turn_ended", "turn": 9, "call": uuid::Uuid::nil()}),
            json!([read, nudged("shorter", 1), nudged("rest", 1), accepted]),
        ),
        (json!({"event": "woken"}), json!([])),
        (json!({"event": "cancel_requested"}), json!([{"decision": "stopping", "calls": 1}])),
        (
            json!({"event": "woken"}),
            json!([{"decision": "message", "seq": 14}, {"decision": "ended", "state": "cancelled", "code": "cancelled"}]),
        ),
    ];
    let at = report.task.submitted_at;
    let step = |(step, (input, decisions))| json!({"step": step, "at": at, "input": input, "decisions": decisions});
    report.steps = serde_json::from_value((1..).zip(steps).map(step).collect()).unwrap();
    let huge = Message {
        call_id: Some("c13_2".to_owned()),
        ..Message::text(Role::Tool, format!("\u{1b}[2J{}", "长".repeat(3000)))
    };
    let answer = Message { call_id: Some("c13_1".to_owned()), ..Message::text(Role::Tool, "\"rest\"") };
    let stored = |seq, message| StoredMessage { seq, task: report.task.task, at: report.task.submitted_at, message };
    report.messages = vec![stored(13, answer), stored(14, huge)];
    report.task.agent = None;
    report.task.usage = redial_proto::Usage::default();
    let text = render(&report, pipe());
    assert!(text.contains("9009 bytes in all; --json prints them"), "{text}");
    insta::assert_snapshot!(text.replace(&"长".repeat(600), "…"));
}

#[test]
fn the_fields_of_a_task() {
    let mut report = sample::report();
    let ended = totals::head(&report.task, pipe());
    report.task.state = TaskState::Waiting;
    report.task.started_at = None;
    (report.task.code, report.task.message, report.task.finished_at) = (None, None, None);
    insta::assert_snapshot!(ended + "----\n" + &totals::head(&report.task, Page::test(Some(40), false)));
}
