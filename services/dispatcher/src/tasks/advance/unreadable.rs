//! The end of a task whose row cannot be read. That is a bug: it fails loudly, and its conversation stays valid.

use std::collections::{BTreeMap, BTreeSet};

use redial_engine::{
    feedback::{Words, failed_call},
    task::CallFailure,
};
use redial_proto::{ErrorClass, Message, Role, StoredMessage, TaskCode, TaskState, Usage};
use redial_store::{TaskChange, TaskRow};

/// Ends the task. Calls that its last assistant message asked for and that nobody answered are answered now.
pub(super) fn give_up(row: &TaskRow, why: &str) -> TaskChange {
    TaskChange {
        id: row.id,
        state: TaskState::Failed,
        progress: "null".to_owned(),
        wake_at: None,
        code: Some(TaskCode::Internal),
        message: Some(format!("Redial failed: {why}")),
        answer: None,
        turns: 0,
        tool_calls: 0,
        corrections: 0,
        usage: Usage::default(),
        messages: missing_answers(row),
        steps: Vec::new(),
        calls: Vec::new(),
        cancel: Vec::new(),
    }
}

fn missing_answers(row: &TaskRow) -> Vec<(u32, Message)> {
    let taken: BTreeSet<u32> = row.messages.iter().map(|stored| stored.seq).collect();
    let asks = |stored: &&StoredMessage| !stored.message.calls.is_empty();
    let Some(last) = row.messages.iter().rev().find(asks) else { return Vec::new() };
    let places = (last.seq + 1..).zip(&last.message.calls).filter(|(seq, _)| !taken.contains(seq));
    let failure = CallFailure {
        class: ErrorClass::Internal,
        message: "the task that asked for it was ended by a failure of Redial".to_owned(),
        details: Vec::new(),
        unknown: true,
    };
    let templates = BTreeMap::new();
    let words = Words { language: row.language, templates: &templates };
    let answer = |tool: &str, id: &str| Message {
        call_id: Some(id.to_owned()),
        tool: Some(tool.to_owned()),
        class: Some(failure.class),
        ..Message::text(Role::Tool, failed_call(words, tool, &failure, None))
    };
    places.map(|(seq, call)| (seq, answer(&call.tool, &call.id))).collect()
}
