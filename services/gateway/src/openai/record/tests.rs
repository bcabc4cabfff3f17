//! Responses from steps, without servers.

use std::collections::BTreeMap;

use redial_proto::{ErrorClass, TaskId};

use super::*;

fn task(notes: &[(&str, &str)]) -> TaskView {
    let at = DateTime::UNIX_EPOCH;
    let task = json!({
        "task": TaskId::generate(), "conversation": "c", "agent": "travel", "model": "small", "input": "A trip.",
        "state": "running", "turns": 0, "tool_calls": 0, "corrections": 0,
        "usage": {"input_tokens": 100, "output_tokens": 20},
        "metadata": notes.iter().copied().collect::<BTreeMap<_, _>>(), "submitted_at": at, "started_at": at,
    });
    serde_json::from_value(task).unwrap()
}

fn step(step: u32, input: &Value, decisions: &[Value]) -> TaskStep {
    let step = json!({"step": step, "at": DateTime::UNIX_EPOCH, "input": input, "decisions": decisions});
    serde_json::from_value(step).unwrap()
}

fn started() -> TaskStep {
    let started = json!({"event": "started", "first_seq": 1, "system": true});
    step(1, &started, &[json!({"decision": "turn", "turn": 1, "model": "small", "last": false})])
}

fn asked(client: bool) -> (TaskStep, StoredMessage) {
    let call = MessageCall { id: "call_1".to_owned(), tool: "book".to_owned(), arguments: "{}".to_owned() };
    asked_for(vec![call], "", client)
}

fn asked_for(calls: Vec<MessageCall>, text: &str, client: bool) -> (TaskStep, StoredMessage) {
    let run = |(index, call): (u32, &MessageCall)| {
        let MessageCall { id, tool, .. } = call;
        json!({"decision": "run", "turn": 1, "call_index": index, "id": id, "tool": tool, "client": client})
    };
    let ended = json!({"event": "turn_ended", "turn": 1, "call": CallId::generate()});
    let message = json!({"decision": "message", "seq": 3});
    let decisions: Vec<Value> = std::iter::once(message).chain((1..).zip(&calls).map(run)).collect();
    (step(2, &ended, &decisions), stored(3, Message { calls, ..Message::text(Role::Assistant, text) }))
}

/// Makes the result of a call, under the id that the model knows it by.
fn answered(call_index: u32, call: CallId, class: Option<ErrorClass>, text: &str) -> (TaskStep, StoredMessage) {
    let (id, seq) = (format!("call_{call_index}"), call_index + 3);
    let answered = json!({
        "decision": "answered", "turn": 1, "call_index": call_index, "id": id, "tool": "book", "ran": true, "class": class,
    });
    let ended = json!({"event": "call_ended", "turn": 1, "call_index": call_index, "call": call});
    let result = Message { call_id: Some(id), class, ..Message::text(Role::Tool, text) };
    let decisions = [answered, json!({"decision": "message", "seq": seq})];
    (step(call_index + 2, &ended, &decisions), stored(seq, result))
}

fn stored(seq: u32, message: Message) -> StoredMessage {
    StoredMessage { seq, task: TaskId::generate(), at: DateTime::UNIX_EPOCH, message }
}

fn kinds(record: &mut Record) -> Vec<String> {
    let events = record.take_events();
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], n, "{events:?}");
    }
    events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

fn record(task: &TaskView, segment: u32) -> Record {
    Record::new(ResponseId { task: task.task, segment }, task.clone())
}

#[test]
fn a_response_in_the_background_is_queued_first() {
    let task = task(&[("redial.background", "true")]);
    let mut response = record(&task, 0);
    response.add(&[started()], Vec::new());
    assert_eq!(kinds(&mut response), ["response.created", "response.queued", "response.in_progress"]);
}

#[test]
fn a_task_that_ended_without_a_step_ends_its_response() {
    let mut task = task(&[]);
    let mut response = record(&task, 0);
    response.add(&[started()], Vec::new());
    response.end_with_task();
    assert!(!response.is_over(), "it runs");
    (task.state, task.code, task.message) =
        (TaskState::Failed, Some(TaskCode::Internal), Some("unreadable".to_owned()));
    response.update(task);
    response.end_with_task();
    response.end_with_task();
    assert_eq!(kinds(&mut response), ["response.created", "response.in_progress", "response.failed"]);
    let shown = response.response();
    assert_eq!((&shown["status"], &shown["error"]["message"]), (&"failed".into(), &"unreadable".into()));
}

#[test]
fn a_task_that_ended_without_a_step_while_its_client_was_asked_ends_what_would_have_followed() {
    let mut task = task(&[]);
    let mut both = [record(&task, 0), record(&task, 1)];
    let (asked, message) = asked(true);
    (task.state, task.code) = (TaskState::Failed, Some(TaskCode::Internal));
    for response in &mut both {
        response.know_functions([((1, 1), CallId::generate())]);
        response.add(&[started(), asked.clone()], vec![message.clone()]);
        response.update(task.clone());
        response.end_with_task();
        assert!(response.is_over());
    }
    assert_eq!(both.each_ref().map(Record::status), ["completed", "failed"]);
    assert_eq!(kinds(&mut both[1]), ["response.created", "response.in_progress", "response.failed"]);
    assert!(both[0].usage().is_none(), "it is counted once");
    assert_eq!(both[1].usage().unwrap()["total_tokens"], 120);
}

#[test]
fn a_tool_that_failed_is_shown_as_the_clients_type_has_it() {
    let task = task(&[]);
    let mut response = record(&task, 0);
    let (asked, message) = asked(false);
    let (answered, result) = answered(1, CallId::generate(), Some(ErrorClass::Rejected), "no seat is left");
    response.add(&[started(), asked, answered], vec![message, result]);
    let item = &response.output()[0];
    assert_eq!((&item["status"], &item["output"]), (&"failed".into(), &Value::Null));
    let content = json!([{"type": "text", "text": "no seat is left"}]);
    assert_eq!(item["error"], json!({"type": "mcp_tool_execution_error", "content": content}));
    assert!(kinds(&mut response).contains(&"response.mcp_call.failed".to_owned()));
}

#[test]
fn what_calls_wrote_is_cut_alike_however_it_is_read_and_says_where_the_whole_is() {
    let task = task(&[]);
    let call = |n| MessageCall { id: format!("call_{n}"), tool: "book".to_owned(), arguments: "é".repeat(SHOWN) };
    let (asked, message) = asked_for((1..=40).map(call).collect(), &"x".repeat(SHOWN * 2), false);
    let (mut steps, mut messages) = (vec![started(), asked], vec![message]);
    let called = CallId::generate();
    for n in 1..=40 {
        let (step, result) = answered(n, called, None, &"o".repeat(SHOWN + 1));
        steps.push(step);
        messages.push(result);
    }
    let (mut whole, mut pages) = (record(&task, 0), record(&task, 0));
    whole.add(&steps, messages.clone());
    let mut events = Vec::new();
    for step in &steps {
        let written = |seq| step.decisions.contains(&TaskDecision::Message { seq });
        pages.add(std::slice::from_ref(step), messages.iter().filter(|one| written(one.seq)).cloned().collect());
        events.extend(pages.take_events());
    }
    assert_eq!(whole.take_events(), events);
    assert_eq!(whole.output()[0]["content"][0]["text"].as_str().unwrap().len(), SHOWN * 2, "the agent's own text");
    let cut = whole.output()[1]["arguments"].as_str().unwrap();
    assert!(cut.len() < SHOWN + 200 && cut.contains("of 131072 bytes"), "{}", &cut[SHOWN..]);
    assert!(cut.ends_with(&format!("GET /v1/tasks/{}/events has the whole)", task.task)), "{}", &cut[SHOWN..]);
    let output = whole.output()[40]["output"].as_str().unwrap();
    assert!(output.ends_with(&format!("of 65537 bytes; GET /v1/calls/{called} has the whole)")), "{output}");
    let of_all = whole.response().to_string().len();
    assert!(of_all < SHOWN * 2 + SHOWN_OF_ALL + 40 * 1024, "{of_all} bytes");
}
