//! The text of whole tasks.

use redial_proto::{Message, Nudged, Role, StoredMessage, TaskDecision, TaskInput, TaskReport, TaskState, TaskStep};

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
    let step = |step, input, decisions| TaskStep { step, at: report.task.submitted_at, input, decisions };
    let started = TaskInput::Started { first_seq: 12, system: false, carried: serde_json::Value::Null };
    let read = TaskDecision::Answered {
        turn: 4,
        call_index: 1,
        id: "c13_1".to_owned(),
        tool: "read_result".to_owned(),
        ran: false,
        class: None,
        message: None,
        corrections_left: None,
    };
    let nudged = |asked, time| TaskDecision::Nudged { problem: "neither Action nor Answer".to_owned(), asked, time };
    let accepted = TaskDecision::Accepted { problem: "neither Action nor Answer".to_owned(), refused: 2 };
    let ended =
        TaskDecision::Ended { state: TaskState::Cancelled, code: redial_proto::TaskCode::Cancelled, message: None };
    report.steps = vec![
        step(1, started, vec![nudged(Nudged::Answer, 1), nudged(Nudged::Form, 2)]),
        step(
            2,
            TaskInput::TurnEnded { turn: 9, call: redial_proto::CallId(uuid::Uuid::nil()) },
            vec![read, nudged(Nudged::Shorter, 1), nudged(Nudged::Rest, 1), accepted],
        ),
        step(3, TaskInput::Woken, vec![]),
        step(4, TaskInput::CancelRequested, vec![TaskDecision::Stopping { calls: 1 }]),
        step(5, TaskInput::Woken, vec![TaskDecision::Message { seq: 14 }, ended]),
    ];
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
