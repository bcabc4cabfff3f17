//! The attempts of this worker, from the grant until the report is on record.
//!
//! Several events can end an attempt: the tool finishes, the call is cancelled, the lease is lost, the tool blocks its thread
//! past its timeout, the grace period ends. The first one takes the abort handle under the lock and decides how the attempt
//! ended; the others then do nothing.

use std::{collections::BTreeMap, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use redial_proto::{GrantRef, ToolEffect};
use tokio::{sync::Notify, task::AbortHandle, time::Instant};

/// Running attempts, and those whose report is not on record yet.
#[derive(Default)]
pub(crate) struct ActiveAttempts {
    attempts: Mutex<BTreeMap<GrantRef, Attempt>>,
    ended: Notify,
}

/// The permission to run an attempt for a limited time.
#[derive(Clone, Copy)]
pub(crate) struct Lease {
    pub(crate) grant: GrantRef,
    pub(crate) effect: ToolEffect,
    /// By this worker's clock, with a margin.
    pub(crate) expires_at: Instant,
    /// How long the tool may run.
    pub(crate) timeout: Duration,
    /// Until when its arguments are fetched; `None` if they came with the grant.
    pub(crate) fetch_until: Option<Instant>,
}

/// A tool that has not ended this long after its timeout blocks its thread: its future can be neither polled nor dropped.
pub(crate) const OVERDUE: Duration = Duration::from_secs(10);

struct Attempt {
    lease: Lease,
    /// `None` while its arguments are fetched: its tool has not started, and its timeout does not run yet.
    started: Option<Instant>,
    /// Stops the tool, or the fetch before it; `None` after the attempt has ended, while its report is not on record.
    tool: Option<AbortHandle>,
    renewed: bool,
}

impl Attempt {
    /// Says whether an attempt runs on without its lease: one of an `unsafe` tool is never granted to another worker.
    fn outlives_lease(&self) -> bool {
        self.lease.effect == ToolEffect::Unsafe && self.started.is_some()
    }

    fn is_overdue(&self, now: Instant) -> bool {
        let longest = self.lease.timeout.saturating_add(OVERDUE);
        self.started.is_some_and(|started| now.saturating_duration_since(started) >= longest)
    }
}

/// An attempt whose tool was stopped before it finished.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoppedAttempt {
    pub(crate) grant: GrantRef,
    pub(crate) effect: ToolEffect,
    /// How long its tool ran; `None` if it was certainly not started.
    pub(crate) ran: Option<Duration>,
}

impl ActiveAttempts {
    /// Starts an attempt; returns false if its lease has ended, or if the worker holds another grant of the call that runs, or is of the
    /// same attempt or a later one: a database that was restored does not know of that one. `spawn` runs under the lock, so it must not
    /// use `self`.
    pub(crate) fn start(&self, lease: Lease, spawn: impl FnOnce() -> AbortHandle) -> bool {
        let GrantRef { call, attempt, .. } = lease.grant;
        let mut attempts = self.lock();
        let of_call =
            attempts.range(GrantRef { attempt: 0, ..lease.grant }..).take_while(|(other, _)| other.call == call);
        let mut in_the_way = of_call.filter(|(other, held)| held.tool.is_some() || other.attempt >= attempt);
        if lease.expires_at <= Instant::now() || in_the_way.next().is_some() {
            return false;
        }
        let started = lease.fetch_until.is_none().then(Instant::now);
        attempts.insert(lease.grant, Attempt { lease, started, tool: Some(spawn()), renewed: true });
        true
    }

    pub(crate) fn holds(&self, grant: GrantRef) -> bool {
        self.lock().contains_key(&grant)
    }

    /// Says whether the worker holds the attempt of this grant, under any claim.
    pub(crate) fn holds_attempt(&self, grant: GrantRef) -> bool {
        let attempts = self.lock();
        let mut of_call =
            attempts.range(GrantRef { attempt: 0, ..grant }..).take_while(|(other, _)| other.call == grant.call);
        of_call.any(|(other, _)| other.attempt == grant.attempt)
    }

    /// Starts the tool of an attempt whose arguments are there, and its timeout. Returns false if the attempt has
    /// ended; the tool must not start then.
    pub(crate) fn begin(&self, grant: GrantRef) -> bool {
        let mut attempts = self.lock();
        let Some(attempt) = attempts.get_mut(&grant).filter(|attempt| attempt.tool.is_some()) else { return false };
        attempt.started = Some(Instant::now());
        true
    }

    /// Ends an attempt whose tool has finished; returns true if the caller must report the result.
    pub(crate) fn finish(&self, grant: GrantRef) -> bool {
        let first = self.lock().get_mut(&grant).is_some_and(|attempt| attempt.tool.take().is_some());
        self.ended.notify_waiters();
        first
    }

    /// Stops the tool if it still runs; the attempt stays active until its report is on record.
    pub(crate) fn stop(&self, grant: GrantRef) -> Option<StoppedAttempt> {
        let stopped = stop(self.lock().get_mut(&grant)?);
        self.ended.notify_waiters();
        stopped
    }

    /// Stops all tools that still run.
    pub(crate) fn stop_all(&self) -> Vec<StoppedAttempt> {
        let stopped = self.lock().values_mut().filter_map(stop).collect();
        self.ended.notify_waiters();
        stopped
    }

    /// Removes an attempt, and stops its tool if it still runs; returns false if there was no such attempt.
    pub(crate) fn remove(&self, grant: GrantRef) -> bool {
        let attempt = self.lock().remove(&grant);
        if let Some(tool) = attempt.as_ref().and_then(|attempt| attempt.tool.as_ref()) {
            tool.abort();
        }
        self.ended.notify_waiters();
        attempt.is_some()
    }

    /// Says when leases end, as the last heartbeat was answered. That is earlier than before if leases are shorter now.
    pub(crate) fn renew<'a>(&self, grants: impl IntoIterator<Item = &'a GrantRef>, expires_at: Instant) {
        let mut attempts = self.lock();
        for grant in grants {
            if let Some(Attempt { lease, .. }) = attempts.get_mut(grant) {
                lease.expires_at = expires_at;
            }
        }
    }

    /// Stops the running attempts whose lease has expired, unless they outlive it. Finished attempts stay: their reports still count
    /// if no other worker was granted the call meanwhile.
    pub(crate) fn expire(&self, now: Instant) -> Vec<StoppedAttempt> {
        let mut attempts = self.lock();
        let expired =
            attempts.values_mut().filter(|attempt| attempt.lease.expires_at <= now && !attempt.outlives_lease());
        let stopped = expired.filter_map(stop).collect();
        self.ended.notify_waiters();
        stopped
    }

    /// Ends the attempts whose tools are overdue. Their leases are not renewed any more.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<StoppedAttempt> {
        let mut attempts = self.lock();
        let overdue = attempts.values_mut().filter(|attempt| attempt.tool.is_some() && attempt.is_overdue(now));
        let stopped: Vec<StoppedAttempt> = overdue
            .filter_map(|attempt| {
                attempt.renewed = false;
                stop(attempt)
            })
            .collect();
        drop(attempts);
        self.ended.notify_waiters();
        stopped
    }

    /// Returns the grants whose leases are to be renewed, those of finished attempts included.
    pub(crate) fn renewed(&self) -> Vec<GrantRef> {
        self.lock().iter().filter(|(_, attempt)| attempt.renewed).map(|(grant, _)| *grant).collect()
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

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GrantRef, Attempt>> {
        self.attempts.lock()
    }
}

fn stop(attempt: &mut Attempt) -> Option<StoppedAttempt> {
    attempt.tool.take()?.abort();
    let Lease { grant, effect, .. } = attempt.lease;
    Some(StoppedAttempt { grant, effect, ran: attempt.started.map(|started| started.elapsed()) })
}

#[cfg(test)]
mod tests {
    use redial_proto::{CallId, ClaimId};

    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn lease() -> Lease {
        let grant = GrantRef { call: CallId::generate(), attempt: 1, claim: ClaimId::generate() };
        let expires_at = Instant::now() + LEASE;
        Lease { grant, effect: ToolEffect::Read, expires_at, timeout: LEASE, fetch_until: None }
    }

    /// Starts an attempt whose tool never ends.
    fn start(attempts: &ActiveAttempts) -> (GrantRef, tokio::task::JoinHandle<()>) {
        start_with(attempts, None)
    }

    /// Does the same with arguments that are fetched until then.
    fn start_with(attempts: &ActiveAttempts, fetch_until: Option<Instant>) -> (GrantRef, tokio::task::JoinHandle<()>) {
        let (lease, tool) = (Lease { fetch_until, ..lease() }, tokio::spawn(std::future::pending()));
        assert!(attempts.start(lease, || tool.abort_handle()));
        (lease.grant, tool)
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_is_started_once_and_ends_once() {
        let attempts = ActiveAttempts::default();
        let (grant, tool) = start(&attempts);
        let again = Lease { grant: GrantRef { claim: ClaimId::generate(), ..grant }, ..lease() };
        assert!(!attempts.start(again, || unreachable!("started twice")));
        assert!(attempts.holds_attempt(again.grant) && !attempts.holds(again.grant));
        assert!(!attempts.holds_attempt(GrantRef { attempt: 2, ..again.grant }));
        assert!(!attempts.finish(again.grant), "it is another grant's");
        assert!(attempts.finish(grant));
        assert!(!attempts.finish(grant));
        assert_eq!(attempts.stop(grant), None);
        assert_eq!(attempts.renewed(), [grant], "active until the report is on record");
        assert!(!attempts.start(again, || unreachable!("started again before its report is on record")));
        let (retry, next) = (GrantRef { attempt: 2, ..again.grant }, tokio::spawn(std::future::pending::<()>()));
        assert!(attempts.start(Lease { grant: retry, ..again }, || next.abort_handle()));
        assert!(attempts.remove(grant) && !attempts.remove(grant));
        assert!(!tool.is_finished());
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_is_not_started_after_its_lease() {
        let attempts = ActiveAttempts::default();
        let late = lease();
        tokio::time::advance(LEASE).await;
        assert!(!attempts.start(late, || unreachable!("started late")));
        assert!(attempts.renewed().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stopped_attempt_does_not_finish() {
        let attempts = ActiveAttempts::default();
        let (grant, tool) = start(&attempts);
        let stopped = attempts.stop(grant).unwrap();
        assert_eq!((stopped.grant, stopped.effect), (grant, ToolEffect::Read));
        assert!(!attempts.finish(grant));
        assert!(tool.await.unwrap_err().is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn only_running_attempts_expire_and_a_renewal_may_shorten_a_lease() {
        let attempts = ActiveAttempts::default();
        let (kept, _tool) = start(&attempts);
        let (done, _tool) = start(&attempts);
        let (lost, tool) = start(&attempts);
        attempts.finish(done);
        attempts.renew(&[kept], Instant::now() + 2 * LEASE);
        let expired = attempts.expire(Instant::now() + LEASE);
        assert_eq!(expired.iter().map(|stopped| stopped.grant).collect::<Vec<_>>(), [lost]);
        assert!(tool.await.unwrap_err().is_cancelled());
        assert!(attempts.expire(Instant::now() + LEASE).is_empty(), "each attempt expires once");
        attempts.renew(&[kept], Instant::now());
        let expired = attempts.expire(Instant::now());
        assert_eq!(expired.iter().map(|stopped| stopped.grant).collect::<Vec<_>>(), [kept]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unsafe_tool_that_has_started_outlives_its_lease() {
        let attempts = ActiveAttempts::default();
        let lease = Lease { effect: ToolEffect::Unsafe, ..lease() };
        let (runs, tool) = (tokio::spawn(std::future::pending::<()>()), lease.grant);
        assert!(attempts.start(lease, || runs.abort_handle()));
        assert!(attempts.expire(Instant::now() + 2 * LEASE).is_empty(), "nobody else is granted it");
        assert_eq!(attempts.renewed(), [tool], "it is renewed when a dispatcher answers again");
        let fetched = Lease {
            grant: GrantRef { call: CallId::generate(), ..tool },
            fetch_until: Some(lease.expires_at),
            ..lease
        };
        let fetch = tokio::spawn(std::future::pending::<()>());
        assert!(attempts.start(fetched, || fetch.abort_handle()));
        assert_eq!(attempts.expire(Instant::now() + 2 * LEASE).len(), 1, "it has not started");
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_outlives_its_timeout_ends_once_and_is_not_renewed() {
        let attempts = ActiveAttempts::default();
        let (done, _tool) = start(&attempts);
        attempts.finish(done);
        let (blocked, _tool) = start(&attempts);
        let late = Instant::now() + LEASE + OVERDUE;
        assert!(attempts.overdue(late - Duration::from_millis(1)).is_empty());
        let overdue = attempts.overdue(late);
        assert_eq!(overdue.iter().map(|stopped| stopped.grant).collect::<Vec<_>>(), [blocked]);
        assert!(attempts.overdue(late).is_empty(), "each ends once");
        assert!(!attempts.finish(blocked), "should the tool end after all, its result does not count");
        assert_eq!(attempts.renewed(), [done], "the finished one is renewed until its report is on record");
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_an_attempt_begins_when_its_arguments_are_there() {
        let attempts = ActiveAttempts::default();
        let (grant, _tool) = start_with(&attempts, Some(Instant::now() + LEASE));
        assert_eq!(attempts.renewed(), [grant], "its lease is renewed meanwhile");
        tokio::time::advance(LEASE + OVERDUE).await;
        assert!(attempts.overdue(Instant::now()).is_empty(), "nothing was started");
        assert!(!attempts.begin(GrantRef { claim: ClaimId::generate(), ..grant }), "it is another grant's");
        assert!(attempts.begin(grant));
        let late = Instant::now() + LEASE + OVERDUE;
        assert!(attempts.overdue(late - Duration::from_millis(1)).is_empty());
        assert_eq!(attempts.overdue(late).len(), 1);
        assert!(!attempts.begin(grant), "it has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_does_not_start_after_its_attempt_was_stopped_during_the_fetch() {
        let attempts = ActiveAttempts::default();
        let (grant, tool) = start_with(&attempts, Some(Instant::now() + LEASE));
        let stopped = attempts.expire(Instant::now() + LEASE);
        assert_eq!(stopped, [StoppedAttempt { grant, effect: ToolEffect::Read, ran: None }]);
        assert!(!attempts.begin(grant));
        assert!(tool.await.unwrap_err().is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn idle_waits_for_the_last_tool() {
        let attempts = ActiveAttempts::default();
        attempts.idle().await;
        let (one, _tool) = start(&attempts);
        let (two, _tool) = start(&attempts);
        attempts.finish(one);
        let idle = tokio::time::timeout(Duration::from_secs(1), attempts.idle());
        assert!(idle.await.is_err());
        let stop = async { assert!(attempts.stop(two).is_some()) };
        tokio::join!(attempts.idle(), stop);
    }
}
