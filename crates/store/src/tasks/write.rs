//! What one commit writes about locked tasks.

use redial_records::TaskTransition;
use uuid::Uuid;

/// One transition, with the conversation of its task.
pub(super) struct TaskWrite<'a> {
    pub(super) transition: &'a TaskTransition,
    pub(super) tenant: &'a str,
    pub(super) conversation: &'a str,
}

/// What is to be written besides transitions.
#[derive(Debug, Default)]
pub(super) struct Unplanned {
    /// Items of inboxes that are done.
    pub(super) received: Vec<i64>,
    /// Ended tasks with a start in their inbox: the next task starts instead.
    pub(super) skipped: Vec<Uuid>,
}
