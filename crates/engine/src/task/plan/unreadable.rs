//! The end of a task whose record cannot be read, and whose user does not want to wait for a version that can: its conversation stays
//! valid.

use std::collections::{BTreeMap, BTreeSet};

use redial_proto::{ErrorClass, Failure, Message, Role, TaskCode, TaskState};
use redial_records::{Reach, ReadConversation, ReadMessage, TaskOutcome, TaskRecord, TaskStatus, TaskTransition};

use super::transition::nothing;
use crate::{
    feedback::{Words, failed_call},
    view,
};

/// Nothing of the task can be read, so this does not depend on it. Open calls belong to the end of the conversation, which
/// is always read, and only their ids are of interest.
pub(super) fn reach() -> Reach {
    view::reach(&BTreeSet::new(), view::Limits { context_tokens: 1_000, result_bytes: 0, bytes: 4_000 })
}

/// Ends the task. Calls of its own last assistant message that have no answer are answered now.
pub(super) fn give_up(record: &TaskRecord, conversation: &ReadConversation, why: &str) -> TaskTransition {
    let outcome = TaskOutcome {
        state: TaskState::Cancelled,
        code: TaskCode::Cancelled,
        message: Some(format!("it was cancelled, and a version of Redial ended it that cannot read it: {why}")),
        answer: None,
    };
    TaskTransition {
        status: TaskStatus::Ended(outcome),
        messages: missing_answers(record, conversation),
        ..nothing(record)
    }
}

fn missing_answers(record: &TaskRecord, conversation: &ReadConversation) -> Vec<(u32, Message)> {
    let taken: BTreeSet<u32> = conversation.messages.iter().map(|read| read.stored.seq).collect();
    // Open calls of another task of the conversation are that task's to answer.
    let asks = |read: &&ReadMessage| read.stored.task == record.id && !read.stored.message.calls.is_empty();
    let Some(ReadMessage { stored: last, .. }) = conversation.messages.iter().rev().find(asks) else {
        return Vec::new();
    };
    let open = (last.seq + 1..).zip(&last.message.calls).filter(|(seq, _)| !taken.contains(seq));
    // Whether the calls did their work is unknown, so the effect is left possible.
    let failure = Failure::new(
        ErrorClass::Internal,
        "the task that asked for it was cancelled, and a version of Redial ended it that cannot read it",
    );
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
