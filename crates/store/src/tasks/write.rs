//! What one commit writes about locked tasks.

use redial_records::TaskTransition;
use uuid::Uuid;

/// One transition, with the conversation of its task.
pub(super) struct TaskWrite<'a> {
    pub(super) transition: &'a TaskTransition,
    pub(super) tenant: &'a str,
    pub(super) conversation: &'a str,
}

/// What is to be written about tasks that there is nothing to plan for.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Items of inboxes that are dealt with.
    pub(super) received: Vec<i64>,
    /// Tasks that wait on, because others come first.
    pub(super) held: Vec<Uuid>,
    /// Ended tasks that were told to start: their turn goes to the next.
    pub(super) skipped: Vec<Uuid>,
}
