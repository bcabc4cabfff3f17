//! A worker process: its attempts, and the claims and releases that got no reply yet.

use redial_proto::ToolEffect;

use super::{
    clock::Ms,
    ids::{Claim, ConsumerNo, Process, ToolSet},
    messages::{Grant, Job, Jobs},
};

/// Attempts that it runs at the same time.
pub(super) const PERMITS: usize = 2;
/// A process; another one replaces it when it dies.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) process: Process,
    pub(super) tools: ToolSet,
    /// Where it pulls jobs, once it is registered.
    pub(super) consumer: Option<ConsumerNo>,
    /// Stopped by a signal; its tools may go on.
    pub(super) paused: bool,
    /// It cannot reach anything.
    pub(super) cut: bool,
    /// It was asked to stop, and takes no new jobs.
    pub(super) stopping: bool,
    pub(super) held: Vec<Held>,
    pub(super) claims: Vec<PendingClaim>,
    /// Releases that got no reply yet.
    pub(super) releases: Vec<Grant>,
    pub(super) heartbeat: u32,
    pub(super) heartbeat_sent: Ms,
    /// When the last heartbeat was answered.
    pub(super) heard_at: Option<Ms>,
    pub(super) renew_at: Ms,
    pub(super) resend_at: Ms,
}

/// An attempt that was granted to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) grant: Grant,
    pub(super) effect: ToolEffect,
    pub(super) lease: Ms,
    /// When the timeout passes.
    pub(super) ends_at: Ms,
    /// The index of its execution in the ledger.
    pub(super) execution: usize,
    /// The tool has ended or was stopped; its report is not yet on record.
    pub(super) reported: bool,
}

/// A claim that got no reply yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingClaim {
    pub(super) claim: Claim,
    pub(super) jobs: Jobs,
    pub(super) deliveries: u32,
    pub(super) sent: Ms,
    /// Sequence numbers of the jobs' messages.
    pub(super) messages: [u32; PERMITS],
}

impl Worker {
    pub(super) const fn new(process: Process, tools: ToolSet) -> Self {
        Self {
            process,
            tools,
            consumer: None,
            paused: false,
            cut: false,
            stopping: false,
            held: Vec::new(),
            claims: Vec::new(),
            releases: Vec::new(),
            heartbeat: 0,
            heartbeat_sent: 0,
            heard_at: None,
            renew_at: 0,
            resend_at: 0,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.held.is_empty() && self.claims.is_empty() && self.releases.is_empty()
    }

    pub(super) fn free_permits(&self) -> usize {
        let running = self.held.iter().filter(|held| !held.reported).count();
        let pending: usize = self.claims.iter().map(|pending| pending.jobs.as_slice().len()).sum();
        let full = self.paused || self.cut || self.stopping || self.consumer.is_none() || self.held.len() >= Jobs::MAX;
        if full { 0 } else { PERMITS.saturating_sub(running + pending) }
    }

    /// When its next timer is due.
    pub(super) fn next_due_at(&self) -> Ms {
        if self.paused || self.is_idle() {
            return Ms::MAX;
        }
        let leases = self.held.iter().filter(|held| !held.reported).map(|held| held.lease.min(held.ends_at));
        leases.chain([self.renew_at, self.resend_at]).min().unwrap_or(Ms::MAX)
    }

    pub(super) fn find(&self, job: Job) -> Option<usize> {
        self.held.iter().position(|held| held.grant.job == job)
    }
}
