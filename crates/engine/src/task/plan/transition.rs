//! The transition of a task: where it starts, and what follows from it.

use redial_proto::{CallId, TaskNotice, Usage};
use redial_records::{Effect, TaskRecord, TaskStatus, TaskTransition};

/// Makes the transition that changes nothing.
pub(super) fn nothing(record: &TaskRecord) -> TaskTransition {
    TaskTransition {
        task: record.id,
        last_step: record.last_step,
        starts: record.start.is_some(),
        status: TaskStatus::Running { wake_at: record.wake_at },
        progress: "null".to_owned(),
        turns: 0,
        tool_calls: 0,
        corrections: 0,
        usage: Usage::default(),
        messages: Vec::new(),
        steps: Vec::new(),
        calls: Vec::new(),
        offers: Vec::new(),
        effects: Vec::new(),
    }
}

/// Returns what is to be done once a transition is on record, besides what its new calls need:
/// [`crate::call::submitted`].
pub(super) fn effects(transition: &TaskTransition, tenant: &str, cancel: Vec<CallId>) -> Vec<Effect> {
    let mut effects: Vec<Effect> = cancel.into_iter().map(Effect::CancelCall).collect();
    effects.extend(transition.steps.last().map(|last| {
        let (task, state) = (transition.task, transition.status.state());
        let notice = TaskNotice { task, step: last.step, state };
        Effect::NotifyWatchers { tenant: tenant.to_owned(), notice }
    }));
    effects
}
