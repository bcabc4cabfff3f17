//! The whole record of a task: what people are shown, and all that is needed to decide it again.

use redial_proto::{AgentSpec, Language, StoredMessage, TaskId, TaskStep, TaskView};
use redial_store::{Store, StoreError, audit::CallRecord};
use serde::Serialize;

/// A task's record; `redial replay --file` reads what this writes.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Record {
    /// The task as users see it.
    #[serde(flatten)]
    pub(in crate::commands) task: TaskView,
    /// Scope of its conversation.
    pub(in crate::commands) tenant: String,
    /// Language of what is said to its model.
    pub(in crate::commands) language: Language,
    /// Its agent, as it was when the task was accepted.
    pub(in crate::commands) spec: AgentSpec,
    /// What happened, in order.
    pub(in crate::commands) steps: Vec<TaskStep>,
    /// What the steps wrote, in order.
    pub(in crate::commands) messages: Vec<StoredMessage>,
    /// What its conversation held before.
    pub(in crate::commands) earlier: Vec<StoredMessage>,
    /// Every call that it asked for, with its attempts; a model's turn is call_index 0.
    pub(in crate::commands) calls: Vec<CallRecord>,
}

/// Reads it; `None` if there is no such task.
pub(in crate::commands) async fn load(store: &Store, id: TaskId) -> Result<Option<Record>, StoreError> {
    let Some(origin) = store.task_origin(id).await? else { return Ok(None) };
    let (mut steps, mut messages) = (Vec::new(), Vec::new());
    let task = loop {
        let after = steps.last().map_or(0, |step: &TaskStep| step.n);
        // Nothing is cut: this goes to a person or a file, not into a message.
        let Some(report) = store.task_report(id, after, usize::MAX).await? else { return Ok(None) };
        let read = report.steps.len();
        steps.extend(report.steps);
        messages.extend(report.messages);
        if !report.more || read == 0 {
            break report.task;
        }
    };
    messages.sort_by_key(|message: &StoredMessage| message.seq);
    Ok(Some(Record {
        task,
        tenant: origin.tenant,
        language: origin.language,
        spec: origin.spec,
        steps,
        messages,
        earlier: origin.earlier,
        // After the steps: so each call that a step says has ended has ended here, too.
        calls: store.task_calls(id).await?,
    }))
}
