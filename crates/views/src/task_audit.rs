//! Everything on record about a task: what `redial show` prints, and what a replay needs.

use redial_proto::{AgentSpec, Language, StoredMessage, TaskId, TaskStep, TaskView, Tenant};
use redial_store::{Store, StoreError, audit::CallAudit};
use serde::Serialize;

/// A task's record; `redial replay --file` reads its JSON.
#[derive(Debug, Serialize)]
pub struct TaskAudit {
    #[serde(flatten)]
    pub task: TaskView,
    pub tenant: String,
    /// Language of Redial's texts to its model.
    pub language: Language,
    /// Its agent at the time of its submission.
    pub spec: AgentSpec,
    /// In order.
    pub steps: Vec<TaskStep>,
    /// The messages that the steps wrote, in order.
    pub messages: Vec<StoredMessage>,
    /// The messages that its conversation had before.
    pub earlier: Vec<StoredMessage>,
    /// All its calls with their attempts; a model's turn has call index 0.
    pub calls: Vec<CallAudit>,
}

impl TaskAudit {
    /// Reads it, however large it is; `None` if there is no such task.
    pub async fn load(store: &Store, id: TaskId) -> Result<Option<Self>, StoreError> {
        let Some(origin) = store.task_origin(id).await? else { return Ok(None) };
        let tenant = Tenant::on_record(&origin.tenant);
        let (mut steps, mut messages) = (Vec::new(), Vec::new());
        let task = loop {
            let after = steps.last().map_or(0, |step: &TaskStep| step.step);
            // Without a limit: nothing may be cut.
            let Some(report) = store.of(&tenant).task_report(id, after, usize::MAX).await? else { return Ok(None) };
            let read = report.steps.len();
            steps.extend(report.steps);
            messages.extend(report.messages);
            if !report.more || read == 0 {
                break report.task;
            }
        };
        messages.sort_by_key(|message: &StoredMessage| message.seq);
        Ok(Some(Self {
            task,
            tenant: origin.tenant,
            language: origin.language,
            spec: origin.spec,
            steps,
            messages,
            earlier: origin.earlier,
            // Read after the steps, so that each call that ended in a step has ended here, too.
            calls: store.task_calls(id).await?,
        }))
    }
}
