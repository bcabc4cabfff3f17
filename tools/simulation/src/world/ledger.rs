//! What really happened in a history, which no process of the protocol knows.

use super::{
    ids::Process,
    messages::{Grant, Job, Outcome},
};

/// An execution of a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution {
    pub(crate) job: Job,
    pub(crate) worker: Process,
    /// The tool has had its effect.
    pub(crate) effect: bool,
    /// Its worker stopped it before its end.
    pub(crate) stopped: bool,
    pub(crate) reported: Option<Outcome>,
}

/// What really happened, and what was acknowledged: the invariants compare the tables with this.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) executions: Vec<Execution>,
    /// Acknowledged submissions of calls and tasks, as bits.
    pub(crate) calls: u64,
    pub(crate) tasks: u64,
    /// Calls whose cancel was acknowledged, as bits.
    pub(crate) cancelled: u128,
    /// Claims that were given up.
    pub(crate) given_up: Vec<Grant>,
    /// Processes that were killed, paused or cut off, by number.
    pub(crate) disturbed: Vec<bool>,
}

impl Ledger {
    pub(crate) fn clear(&mut self) {
        self.executions.clear();
        self.given_up.clear();
        self.disturbed.clear();
        (self.calls, self.tasks, self.cancelled) = (0, 0, 0);
    }
}
