//! What people see of a task.

use redial_proto::{Message, Role, StoredMessage, TaskDecision, TaskInput, TaskReport, TaskState, TaskStep};

use super::*;

const PIPE: Page = Page { width: None, colours: false };

fn tell(report: &TaskReport, page: Page) -> String {
    let mut narrator = Narrator::new(&report.task, page);
    narrator.learn(&report.messages);
    let mut text = narrator.begin(&report.task);
    for step in &report.steps {
        text.push_str(&narrator.tell(step, Seen::default(), Vec::new()));
    }
    text + &narrator.end(&report.task)
}

#[test]
fn a_task_with_everything_in_it() {
    insta::assert_snapshot!(tell(&sample::report(), PIPE));
}

#[test]
fn on_terminals_of_any_width() {
    let report = sample::report();
    let shown = [80, 40].map(|width| tell(&report, Page { width: Some(width), colours: false }));
    insta::assert_snapshot!(shown.join("\n----\n\n"));
}

#[test]
fn colours_change_nothing_else() {
    let report = sample::report();
    let coloured = tell(&report, Page { width: Some(80), colours: true });
    let mut plain = String::new();
    for (n, piece) in coloured.split('\u{1b}').enumerate() {
        plain.push_str(if n == 0 { piece } else { piece.split_once('m').unwrap().1 });
    }
    assert_ne!(coloured, plain);
    assert_eq!(plain, tell(&report, Page { width: Some(80), colours: false }));
}

#[test]
fn what_was_seen_live_is_not_told_again() {
    let report = sample::report();
    let mut narrator = Narrator::new(&report.task, PIPE);
    narrator.learn(&report.messages);
    narrator.tell(&report.steps[0], Seen::default(), Vec::new());
    assert_eq!(narrator.open_turn(), Some(1));
    let said = narrator.said(&report.steps[1]).unwrap();
    assert_eq!(said.content, "好的，我先订票，同时查询天气。");
    let told = narrator.tell(&report.steps[1], Seen { thought: true, text: true }, Vec::new());
    assert!(!told.contains("thinks") && !told.contains("says") && told.contains("book_flight"), "{told}");
    assert_eq!(narrator.open_turn(), None);
}

#[test]
fn rarer_things_have_words_too() {
    let mut report = sample::report();
    let step = |n, input, decisions| TaskStep { n, at: report.task.submitted_at, input, decisions };
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
    let ended =
        TaskDecision::Ended { state: TaskState::Cancelled, code: redial_proto::TaskCode::Cancelled, message: None };
    report.steps = vec![
        step(1, started, vec![TaskDecision::Nudged { problem: "neither Action nor Answer".to_owned() }]),
        step(2, TaskInput::TurnEnded { turn: 9, call: redial_proto::CallId(uuid::Uuid::nil()) }, vec![read]),
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
    let told = tell(&report, PIPE);
    assert!(told.contains("9009 bytes in all; --json prints them"), "{told}");
    insta::assert_snapshot!(told.replace(&"长".repeat(600), "…"));
}

#[test]
fn the_head_of_a_task() {
    let mut report = sample::report();
    let ended = head(&report.task, PIPE);
    report.task.state = TaskState::Waiting;
    report.task.started_at = None;
    (report.task.code, report.task.message, report.task.finished_at) = (None, None, None);
    insta::assert_snapshot!(ended + "----\n" + &head(&report.task, Page { width: Some(40), colours: false }));
}
