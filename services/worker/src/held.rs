//! The attempts that this worker answers for: from the grant until the report is on record.
//!
//! Whoever ends an attempt first wins, under one lock: the tool that finishes, a cancel, a lost lease, the end of the
//! grace. The others then find that there is nothing left to end.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redial_proto::{Effect, GrantRef, JobRef};
use tokio::{sync::Notify, task::AbortHandle, time::Instant};

/// See the module.
#[derive(Default)]
pub(crate) struct Held {
    attempts: Mutex<HashMap<JobRef, Attempt>>,
    ended: Notify,
}

/// The right to run an attempt.
#[derive(Clone, Copy)]
pub(crate) struct Right {
    pub(crate) grant: GrantRef,
    pub(crate) effect: Effect,
    /// When the lease ends, by this worker's clock.
    pub(crate) lease: Instant,
}

struct Attempt {
    grant: GrantRef,
    lease: Instant,
    started: Instant,
    effect: Effect,
    /// What stops the tool; `None` once the attempt has ended and only its report waits.
    tool: Option<AbortHandle>,
}

/// An attempt that was stopped before its tool was done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub(crate) grant: GrantRef,
    pub(crate) effect: Effect,
    pub(crate) ran: Duration,
}

impl Held {
    /// Starts an attempt, unless it is held already. `spawn` must not wait for this lock before it returns.
    pub(crate) fn start(&self, right: Right, spawn: impl FnOnce() -> AbortHandle) -> bool {
        let Right { grant, effect, lease } = right;
        let mut attempts = self.lock();
        if attempts.contains_key(&grant.job_ref()) {
            return false;
        }
        let attempt = Attempt { grant, lease, started: Instant::now(), effect, tool: Some(spawn()) };
        attempts.insert(grant.job_ref(), attempt);
        true
    }

    /// The tool is done. True if its end counts, and must be reported.
    pub(crate) fn finish(&self, job: JobRef) -> bool {
        let counts = self.lock().get_mut(&job).is_some_and(|attempt| attempt.tool.take().is_some());
        self.ended.notify_waiters();
        counts
    }

    /// Stops the tool if it still runs; the attempt stays held until its report is on record.
    pub(crate) fn stop(&self, job: JobRef) -> Option<Stopped> {
        let stopped = stop(self.lock().get_mut(&job)?);
        self.ended.notify_waiters();
        stopped
    }

    /// Stops all tools that still run.
    pub(crate) fn stop_all(&self) -> Vec<Stopped> {
        let stopped = self.lock().values_mut().filter_map(stop).collect();
        self.ended.notify_waiters();
        stopped
    }

    /// No longer this worker's: stops the tool if it still runs. True if the attempt was held.
    pub(crate) fn forget(&self, job: JobRef) -> bool {
        let attempt = self.lock().remove(&job);
        if let Some(tool) = attempt.as_ref().and_then(|attempt| attempt.tool.as_ref()) {
            tool.abort();
        }
        self.ended.notify_waiters();
        attempt.is_some()
    }

    /// A dispatcher renewed these leases until `lease`.
    pub(crate) fn renewed(&self, jobs: &[JobRef], lease: Instant) {
        let mut attempts = self.lock();
        for job in jobs {
            if let Some(attempt) = attempts.get_mut(job) {
                attempt.lease = attempt.lease.max(lease);
            }
        }
    }

    /// Stops the running attempts whose lease ended. What is done is left alone: if nobody else was granted the call
    /// meanwhile, its report still counts.
    pub(crate) fn expire(&self, now: Instant) -> Vec<Stopped> {
        let mut attempts = self.lock();
        let over = attempts.values_mut().filter(|attempt| attempt.lease <= now);
        let stopped = over.filter_map(stop).collect();
        self.ended.notify_waiters();
        stopped
    }

    /// All attempts, running or waiting for their report to be on record.
    pub(crate) fn jobs(&self) -> Vec<JobRef> {
        self.lock().keys().copied().collect()
    }

    /// Waits until no tool runs.
    pub(crate) async fn idle(&self) {
        loop {
            let ended = self.ended.notified();
            if self.lock().values().all(|attempt| attempt.tool.is_none()) {
                return;
            }
            ended.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobRef, Attempt>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stop(attempt: &mut Attempt) -> Option<Stopped> {
    attempt.tool.take()?.abort();
    Some(Stopped { grant: attempt.grant, effect: attempt.effect, ran: attempt.started.elapsed() })
}

#[cfg(test)]
mod tests {
    use redial_proto::{CallId, ClaimId};

    use super::*;

    fn right(lease: Duration) -> Right {
        let grant = GrantRef { call: CallId::generate(), attempt: 1, claim: ClaimId::generate() };
        Right { grant, effect: Effect::Read, lease: Instant::now() + lease }
    }

    /// Holds an attempt whose tool never ends.
    fn held(held: &Held, lease: Duration) -> (JobRef, tokio::task::JoinHandle<()>) {
        let (right, tool) = (right(lease), tokio::spawn(std::future::pending()));
        assert!(held.start(right, || tool.abort_handle()));
        (right.grant.job_ref(), tool)
    }

    const LEASE: Duration = Duration::from_secs(15);

    #[tokio::test(start_paused = true)]
    async fn an_attempt_is_started_once_and_ends_once() {
        let attempts = Held::default();
        let (job, tool) = held(&attempts, LEASE);
        let again =
            Right { grant: GrantRef { claim: ClaimId::generate(), call: job.call, attempt: 1 }, ..right(LEASE) };
        assert!(!attempts.start(again, || unreachable!("started twice")));
        assert!(attempts.finish(job));
        assert!(!attempts.finish(job));
        assert_eq!(attempts.stop(job), None);
        assert_eq!(attempts.jobs(), [job], "held until the report is on record");
        assert!(attempts.forget(job) && !attempts.forget(job));
        assert!(!tool.is_finished());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stopped_tool_has_nothing_to_report() {
        let attempts = Held::default();
        let (job, tool) = held(&attempts, LEASE);
        let stopped = attempts.stop(job).unwrap();
        assert_eq!((stopped.grant.job_ref(), stopped.effect), (job, Effect::Read));
        assert!(!attempts.finish(job));
        assert!(tool.await.unwrap_err().is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn only_running_attempts_expire_and_renewal_only_prolongs() {
        let attempts = Held::default();
        let (kept, _tool) = held(&attempts, LEASE);
        let (done, _tool) = held(&attempts, LEASE);
        let (lost, tool) = held(&attempts, LEASE);
        attempts.finish(done);
        attempts.renewed(&[kept], Instant::now() + 2 * LEASE);
        attempts.renewed(&[kept], Instant::now());
        let expired = attempts.expire(Instant::now() + LEASE);
        assert_eq!(expired.iter().map(|stopped| stopped.grant.job_ref()).collect::<Vec<_>>(), [lost]);
        assert!(tool.await.unwrap_err().is_cancelled());
        assert!(attempts.expire(Instant::now() + LEASE).is_empty(), "each expires once");
    }

    #[tokio::test(start_paused = true)]
    async fn idle_waits_for_the_last_tool() {
        let attempts = Held::default();
        attempts.idle().await;
        let (one, _tool) = held(&attempts, LEASE);
        let (two, _tool) = held(&attempts, LEASE);
        attempts.finish(one);
        let idle = tokio::time::timeout(Duration::from_secs(1), attempts.idle());
        assert!(idle.await.is_err());
        let stop = async { assert!(attempts.stop(two).is_some()) };
        tokio::join!(attempts.idle(), stop);
    }
}
