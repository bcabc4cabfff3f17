//! What must hold whatever a model does. What is broken is a list of lines, so that the table is printed in any case.

use std::collections::{BTreeMap, BTreeSet};

use redial_proto::{Role, StoredMessage, TaskCode, TaskState};
use redial_testkit::validators::{
    self,
    openai::{Rule, faults_by},
};
use serde_json::Value;

use super::{
    fixture::{BUDGETS, Fixture, Way},
    record::{Record, ToolCall, Turn},
    wire::Exchange,
};

/// Every promise that the record of a task breaks.
pub(crate) fn broken(fixture: &Fixture, way: Way, record: &Record, exchanges: &[Exchange]) -> Vec<String> {
    let mut broken = ended(record);
    broken.extend(conversation(&record.messages));
    for exchange in exchanges {
        broken.extend(refused(way, &exchange.request));
    }
    let turns = record.turns();
    for call in record.tool_calls() {
        let turn = turns.iter().find(|turn| turn.number == call.turn);
        broken
            .extend(turn.map_or_else(|| vec!["a call of no turn".to_owned()], |turn| guessed(turn, &call, exchanges)));
    }
    let (identical, said) = fixture.redial(&["replay", &record.task.task.to_string()]);
    if !identical {
        broken.push(format!("the replay differs: {said}"));
    }
    broken
}

/// A terminal state, its code, and the limits.
fn ended(record: &Record) -> Vec<String> {
    let task = &record.task;
    let mut broken = Vec::new();
    let mut must = |holds: bool, what: String| broken.extend((!holds).then_some(what));
    must(task.state.is_terminal(), format!("the state is {}", task.state));
    must(task.code.is_some() && task.code != Some(TaskCode::Internal), format!("the code is {:?}", task.code));
    let answered = matches!(task.code, Some(TaskCode::Answered | TaskCode::AnswerCutOff));
    must(answered == (task.state == TaskState::Succeeded), format!("{:?} ends {}", task.code, task.state));
    must(!answered || task.answer.as_ref().is_some_and(|text| !text.trim().is_empty()), "the answer is empty".into());
    must(answered || task.message.is_some(), "nothing says why it failed".into());
    // And a last answer.
    must(task.turns <= BUDGETS.turns + 1, format!("{} turns", task.turns));
    must(task.corrections <= BUDGETS.corrections + 1, format!("{} corrections", task.corrections));
    must(task.tool_calls <= BUDGETS.tool_calls, format!("{} tool calls", task.tool_calls));
    must((1..).zip(&record.steps).all(|(n, step)| step.step == n), "a step is missing".into());
    let open = record.calls.iter().filter(|call| call.line.finished_at.is_none()).count();
    must(open == 0, format!("{open} calls are not over"));
    broken
}

/// Each call is answered once, in order, directly after the message that contains it.
fn conversation(messages: &[StoredMessage]) -> Vec<String> {
    let (mut open, mut broken) = (std::collections::VecDeque::new(), Vec::new());
    for StoredMessage { seq, message, .. } in messages {
        let wanted = open.pop_front();
        if message.call_id.as_ref() != wanted {
            broken.push(format!("message {seq} answers {:?}, wanted {wanted:?}", message.call_id));
        }
        if (message.role == Role::Tool) != message.call_id.is_some() {
            broken.push(format!("message {seq} of {:?} answers {:?}", message.role, message.call_id));
        }
        open.extend(message.calls.iter().map(|call| &call.id));
    }
    broken.extend((!open.is_empty()).then(|| format!("nothing answers {open:?}")));
    broken
}

/// What a strict provider would refuse in a request.
fn refused(way: Way, request: &Value) -> Vec<String> {
    match way {
        Way::Functions | Way::InText => faults_by(request, &[Rule::NoNull]),
        Way::React => validators::react::faults(request),
    }
}

/// A call that ran was offered, and the model wrote its tool and every value of its arguments.
fn guessed(turn: &Turn, call: &ToolCall<'_>, exchanges: &[Exchange]) -> Vec<String> {
    let ran = &call.audit.line.tool;
    let place = format!("call {}/{} of {ran}", call.turn, call.call_index);
    let offered = turn.offered.iter().any(|tool| tool.name == *ran);
    if call.audit.attempts_made.is_empty() {
        return Vec::new();
    }
    let mut broken = Vec::new();
    broken.extend((!offered).then(|| format!("{place} was not offered")));
    let Some(written) = turn.wrote(call.call_index) else { return vec![format!("{place} is in no reply")] };
    let arguments: Value = serde_json::from_str(call.audit.arguments.get()).unwrap();
    for value in leaves(&arguments) {
        let on_the_wire = exchanges.iter().any(|exchange| exchange.written.contains(&value));
        if !written.arguments.contains(&value) || !on_the_wire {
            broken.push(format!("{place} got {value:?}; the model wrote {:?}", written.arguments));
        }
    }
    broken.extend(
        (!exchanges.iter().any(|exchange| exchange.written.contains(&written.name)))
            .then(|| format!("{place}: the model never wrote {:?}", written.name)),
    );
    broken
}

/// Texts and numbers as they must stand in what a model wrote. The tools of this test have no other values, and their texts
/// need no escapes.
fn leaves(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Object(members) => members.values().flat_map(leaves).collect(),
        Value::String(text) => vec![text.clone()],
        other => vec![other.to_string()],
    }
}

/// What the tools did is what is on record, no more and no less.
pub(crate) fn broken_by_tools(fixture: &Fixture, records: &[Record]) -> Vec<String> {
    let runs = fixture.runs.all();
    let done: BTreeSet<_> = runs.iter().map(|run| (run.call.0, run.tool.clone(), plain(&run.arguments))).collect();
    let calls = records.iter().flat_map(Record::tool_calls);
    let ran = calls.filter(|call| !call.audit.attempts_made.is_empty());
    let what = |call: ToolCall<'_>| {
        let arguments = serde_json::from_str(call.audit.arguments.get()).unwrap();
        (call.audit.line.call, call.audit.line.tool.clone(), plain(&arguments))
    };
    let on_record: BTreeSet<_> = ran.map(what).collect();
    let mut broken = Vec::new();
    broken.extend((done.len() != runs.len()).then(|| "a tool ran twice for one call".to_owned()));
    broken.extend((done != on_record).then(|| format!("the tools ran {done:?}, on record are {on_record:?}")));
    broken
}

/// The members of an object in one order, with every number as a tool that takes any number gets it.
fn plain(arguments: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string());
    arguments.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
}
