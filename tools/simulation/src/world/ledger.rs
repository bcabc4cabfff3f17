//! ItemKind really happened, as no process of the protocol knows it.

use super::{
    ids::Process,
    messages::{Grant, Job, Outcome},
};

/// An execution of a tool, as it really was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution {
    pub(crate) job: Job,
    pub(crate) worker: Process,
    /// The tool has done its work.
    pub(crate) effect: bool,
    /// Its worker stopped it half-way.
    pub(crate) stopped: bool,
    pub(crate) reported: Option<Outcome>,
}

/// ItemKind really happened, and what was promised: the tables are measured by this.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) executions: Vec<Execution>,
    /// Submissions that were acknowledged, by call and by task.
    pub(crate) calls: u64,
    pub(crate) tasks: u64,
    /// Calls whose cancel was acknowledged.
    pub(crate) cancelled: u128,
    /// Claims that were given up.
    pub(crate) given_up: Vec<Grant>,
    /// By process: it was killed, stopped or cut off.
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
