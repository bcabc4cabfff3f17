//! Decisions about tasks whose tools and models come and go.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta};
use redial_proto::{
    AgentSpec, CallId, CallState, ErrorClass, Language, ReplyCall, Role, StoredMessage, TaskCode, TaskId, TaskInput,
    TaskState, ToolSpec, TurnReply, TurnRequest, turn,
};
use redial_store::{Advancer as _, EndedCall, InboxItem, StartInfo, TaskChange, TaskRow, Time};

use super::decide::Decider;
use redial_engine::tools::{Tool, Tools};

const NOW: Time = DateTime::UNIX_EPOCH;

fn tools(names: &[&str]) -> Tools {
    let spec = |name: &&str| {
        let pool = if turn::model_name(name).is_some() { turn::POOL } else { "default" };
        ToolSpec { pool: pool.to_owned(), ..ToolSpec::named(*name) }
    };
    names.iter().map(spec).map(|spec| (spec.name.clone(), Arc::new(Tool::new(spec).unwrap()))).collect()
}

fn new_row() -> TaskRow {
    let spec = AgentSpec { tools: vec!["look".into(), "act".into()], system: "Be.".into(), ..AgentSpec::new("small") };
    TaskRow {
        id: TaskId::generate(),
        tenant: "default".to_owned(),
        conversation: "c".to_owned(),
        state: TaskState::Waiting,
        agent: None,
        language: Language::En,
        spec: serde_json::to_string(&spec).unwrap(),
        input: "Look.".to_owned(),
        progress: None,
        last_step: 0,
        wake_at: Some(NOW + TimeDelta::seconds(1)),
        traceparent: Some("trace".to_owned()),
        submitted_at: NOW,
        now: NOW,
        inbox: vec![InboxItem::Start],
        messages: Vec::new(),
        start: Some(StartInfo { next_seq: 1, system: None, carried: None }),
    }
}

/// What the task finds next, after a change was written.
fn after(row: &TaskRow, change: &TaskChange, inbox: Vec<InboxItem>) -> TaskRow {
    let mut messages = row.messages.clone();
    messages.extend(change.messages.iter().map(|(seq, message)| StoredMessage {
        seq: *seq,
        task: row.id,
        at: row.now,
        message: message.clone(),
    }));
    TaskRow {
        state: change.state,
        progress: Some(change.progress.clone()),
        last_step: change.steps.last().map_or(row.last_step, |step| step.n),
        wake_at: change.wake_at,
        inbox,
        messages,
        start: None,
        ..row.clone()
    }
}

/// The end of a model's call, which asks for these tools.
fn asks_for(call: &NewCall, names: &[&str]) -> InboxItem {
    let calls = names.iter().map(|name| ReplyCall { name: (*name).to_owned(), arguments: "{}".to_owned() }).collect();
    let reply = TurnReply { calls, ..TurnReply::default() };
    ended(call, CallState::Succeeded, Some(serde_json::to_string(&reply).unwrap()))
}

fn ended(call: &NewCall, state: CallState, output: Option<String>) -> InboxItem {
    let call_index = call.task.unwrap();
    InboxItem::Ended(EndedCall {
        call: call.id,
        turn: call_index.turn,
        call_index: call_index.call_index,
        state,
        class: None,
        message: None,
        details: None,
        output,
        arguments: (call_index.call_index == 0).then(|| call.arguments.clone()),
    })
}

fn decide(tools: &Tools, row: &TaskRow) -> TaskChange {
    Decider::new(tools).advance(row.clone()).unwrap()
}

#[test]
fn a_start_asks_the_model_with_the_tools_in_order() {
    let row = new_row();
    let change = decide(&tools(&["look", "model-small", "act", "other"]), &row);
    assert_eq!((change.state, change.steps.len()), (TaskState::Running, 1));
    let roles: Vec<(u32, Role)> = change.messages.iter().map(|(seq, message)| (*seq, message.role)).collect();
    assert_eq!(roles, [(1, Role::System), (2, Role::User)]);
    let [call] = change.calls.as_slice() else { panic!("{:?}", change.calls) };
    assert_eq!((call.tool.as_str(), call.pool.as_str(), call.refusal.is_none()), ("model-small", turn::POOL, true));
    assert_eq!((call.conversation.as_deref(), call.traceparent.as_deref()), (Some("c"), Some("trace")));
    let call_index = call.task.unwrap();
    assert_eq!((call_index.task, call_index.turn, call_index.call_index), (row.id, 1, 0));
    let request: TurnRequest = serde_json::from_str(&call.arguments).unwrap();
    assert_eq!(request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["act", "look"]);
}

#[test]
fn instructions_are_written_once() {
    let told = StartInfo { next_seq: 7, system: Some("Be.".to_owned()), carried: Some("no progress".to_owned()) };
    let change = decide(&tools(&["model-small"]), &TaskRow { start: Some(told), ..new_row() });
    assert_eq!(
        change.messages.iter().map(|(seq, message)| (*seq, message.role)).collect::<Vec<_>>(),
        [(7, Role::User)]
    );
}

#[test]
fn a_tool_that_is_gone_answers_its_call_and_the_others_go_on() {
    let known = tools(&["look", "act", "model-small"]);
    let row = new_row();
    let start = decide(&known, &row);
    let row = after(&row, &start, vec![asks_for(&start.calls[0], &["look", "act"])]);
    let change = decide(&tools(&["act", "model-small"]), &row);
    let calls: Vec<_> = change.calls.iter().map(|call| (call.tool.as_str(), call.refusal.is_some())).collect();
    assert_eq!(calls, [("look", true), ("act", false)]);
    let inputs: Vec<_> = change.steps.iter().map(|step| &step.input).collect();
    assert!(
        matches!(inputs[..], [TaskInput::TurnEnded { .. }, TaskInput::CallEnded { call_index: 1, .. }]),
        "the refusal is an event like any other: {inputs:?}"
    );
    let answers: Vec<_> = change.messages.iter().filter(|(_, message)| message.role == Role::Tool).collect();
    assert_eq!((answers.len(), answers[0].1.class), (1, Some(ErrorClass::UnknownTool)));
}

#[test]
fn a_model_that_is_gone_ends_the_task() {
    let row = new_row();
    let change = decide(&tools(&["look"]), &row);
    assert_eq!((change.state, change.code), (TaskState::Failed, Some(TaskCode::ModelFailed)));
    let refusal = change.calls[0].refusal.as_ref().unwrap();
    assert_eq!(refusal.message, "no worker serves the model \"small\"");
    assert_eq!(change.steps.len(), 2);
}

#[test]
fn a_wake_without_a_reason_is_no_step() {
    let known = tools(&["look", "model-small"]);
    let row = new_row();
    let start = decide(&known, &row);
    let due = TaskRow { wake_at: Some(NOW), ..after(&row, &start, Vec::new()) };
    let change = decide(&known, &due);
    assert_eq!((change.steps.len(), change.calls.len()), (0, 0));
    assert_eq!((change.state, change.progress), (TaskState::Running, start.progress));
    assert!(change.wake_at.unwrap() > NOW);
}

#[test]
fn only_retries_need_no_messages() {
    let retry = InboxItem::Retrying {
        call: CallId::generate(),
        turn: 1,
        call_index: 0,
        tool: "model-small".to_owned(),
        attempt: 1,
        class: ErrorClass::RateLimited,
        message: "slow down".to_owned(),
        next_at: NOW,
    };
    let known = Tools::new();
    let mut decider = Decider::new(&known);
    let mut wants = |inbox: Vec<InboxItem>, wake_at| {
        decider.wants_messages(&TaskRow { inbox, wake_at, state: TaskState::Running, start: None, ..new_row() })
    };
    let later = Some(NOW + TimeDelta::seconds(9));
    assert!(!wants(vec![retry.clone(), retry.clone()], later));
    assert!(wants(vec![retry.clone()], Some(NOW)));
    assert!(wants(vec![retry, InboxItem::Cancel], later));
}

#[test]
fn what_a_worker_wrote_may_be_no_reply() {
    let known = tools(&["look", "model-small"]);
    let row = new_row();
    let start = decide(&known, &row);
    for output in ["3", "{\"calls\": 1}", "null"] {
        let nonsense = ended(&start.calls[0], CallState::Succeeded, Some(output.to_owned()));
        let change = decide(&known, &after(&row, &start, vec![nonsense]));
        assert_eq!(change.code, Some(TaskCode::ModelFailed));
        assert!(change.message.unwrap().contains("what is no reply"));
    }
}

#[test]
fn a_row_that_cannot_be_read_is_ended() {
    let broken = [
        TaskRow { spec: "{}".to_owned(), ..new_row() },
        TaskRow { progress: Some("{\"turn\": -1}".to_owned()), state: TaskState::Running, start: None, ..new_row() },
    ];
    for row in broken {
        let change = decide(&tools(&["model-small"]), &row);
        assert_eq!((change.state, change.code), (TaskState::Failed, Some(TaskCode::Internal)));
        assert!(change.message.unwrap().contains("cannot be read"));
    }
}
