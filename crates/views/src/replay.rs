//! The decisions of a recorded task, repeated: what is on record goes through the engine's planner again.

use redial_engine::task::{self, Difference, Recorded};
use redial_proto::{AgentSpec, Language, StoredMessage, TaskId, TaskStep};
use redial_store::audit::CallAudit;
use serde::Deserialize;

/// The part of a task's record that a replay needs: what `redial show TASK --json` writes.
#[derive(Debug, Deserialize)]
pub struct SavedTask {
    pub task: TaskId,
    pub input: String,
    /// Language of Redial's texts to its model.
    pub language: Language,
    /// Its agent at the time of its submission.
    pub spec: AgentSpec,
    /// In order.
    pub steps: Vec<TaskStep>,
    /// The messages that the steps wrote.
    pub messages: Vec<StoredMessage>,
    /// The messages that its conversation had before.
    #[serde(default)]
    pub earlier: Vec<StoredMessage>,
    pub calls: Vec<CallAudit>,
}

impl SavedTask {
    /// Returns every decision that is made otherwise than it is on record, in order; none if the task would go exactly
    /// the same way again.
    pub fn replay(&self) -> Vec<Difference> {
        let mut messages = [self.earlier.as_slice(), self.messages.as_slice()].concat();
        messages.sort_by_key(|message| message.seq);
        let calls: Vec<_> = self.calls.iter().filter_map(CallAudit::ended).collect();
        task::replay(&Recorded {
            task: self.task,
            spec: &self.spec,
            language: self.language,
            input: &self.input,
            steps: &self.steps,
            messages: &messages,
            calls: &calls,
        })
    }

    pub fn decisions(&self) -> usize {
        self.steps.iter().map(|step| step.decisions.len()).sum()
    }
}
