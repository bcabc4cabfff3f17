//! The end of a task whose record cannot be read. That is a bug: the task fails loudly, and its conversation stays
//! valid.

use std::collections::{BTreeMap, BTreeSet};

use redial_proto::{ErrorClass, Failure, Message, Role, StoredMessage, TaskCode, TaskState};
use redial_records::{TaskOutcome, TaskRecord, TaskStatus, TaskTransition};

use super::transition::nothing;
use crate::feedback::{Words, failed_call};

/// Ends the task. Calls of its own last assistant message that have no answer are answered now.
pub(super) fn give_up(record: &TaskRecord, conversation: &[StoredMessage], why: &str) -> TaskTransition {
    let outcome = TaskOutcome {
        state: TaskState::Failed,
        code: TaskCode::Internal,
        message: Some(format!("Redial failed: {why}")),
        answer: None,
    };
    TaskTransition {
        status: TaskStatus::Ended(outcome),
        messages: missing_answers(record, conversation),
        ..nothing(record)
    }
}

fn missing_answers(record: &TaskRecord, conversation: &[StoredMessage]) -> Vec<(u32, Message)> {
    let taken: BTreeSet<u32> = conversation.iter().map(|stored| stored.seq).collect();
    // Open calls of another task of the conversation are that task's to answer.
    let asks = |stored: &&StoredMessage| stored.task == record.id && !stored.message.calls.is_empty();
    let Some(last) = conversation.iter().rev().find(asks) else { return Vec::new() };
    let open = (last.seq + 1..).zip(&last.message.calls).filter(|(seq, _)| !taken.contains(seq));
    // Whether the calls did their work is unknown, so the effect is left possible.
    let failure = Failure::new(ErrorClass::Internal, "the task that asked for it was ended by a failure of Redial");
    let templates = BTreeMap::new();
    let words = Words { language: record.language, templates: &templates };
    let answer = |tool: &str, id: &str| Message {
        call_id: Some(id.to_owned()),
        tool: Some(tool.to_owned()),
        class: Some(failure.class),
        ..Message::text(Role::Tool, failed_call(words, tool, &failure, None))
    };
    open.map(|(seq, call)| (seq, answer(&call.tool, &call.id))).collect()
}
