//! The state that all tasks of one worker share.

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures_util::future::select_ok;
use parking_lot::Mutex;
use redial_backoff::Backoff;
use redial_loops::Loops;
use redial_proto::{
    GrantRef, WorkerId,
    subjects::{self, ControlVerb},
};
use redial_queue::{Queue, QueueError};
use redial_shares::Shares;
use redial_tools::Tool;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    attempts::ActiveAttempts,
    heard::{ClaimTime, Heard},
    pool::Slots,
    report::ReportSender,
};

/// The length of a lease until the registration is answered: the dispatchers' default.
const FIRST_LEASE: Duration = Duration::from_secs(15);

/// Outputs over 1 MiB that a worker holds at a time: 128 MiB at most.
const LARGE_OUTPUTS: usize = 8;

/// What a worker calls itself in its requests.
pub(crate) struct Named {
    pub(crate) id: WorkerId,
    pub(crate) pools: String,
    pub(crate) host: Option<String>,
}

pub(crate) struct WorkerState {
    pub(crate) queue: Queue,
    pub(crate) id: WorkerId,
    /// The pools of its credentials, part of the subjects of its requests.
    pools: String,
    pub(crate) host: Option<String>,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) tools: HashMap<String, Tool>,
    pub(crate) slots: Slots,
    pub(crate) attempts: ActiveAttempts,
    pub(crate) reports: ReportSender,
    /// Large outputs at a time, which tenants share, from when they grow until they are on record.
    pub(crate) outputs: Shares,
    /// Cancelled when the worker takes no more jobs.
    pub(crate) draining: CancellationToken,
    /// Tasks that claim jobs or release attempts.
    pub(crate) control_tasks: Loops,
    /// Tasks that run tools.
    pub(crate) tool_tasks: TaskTracker,
    /// Wakes the heartbeat early.
    pub(crate) heartbeat_now: Notify,
    /// Wakes the task that registers the worker again.
    pub(crate) register_now: Notify,
    /// The consumers that bring its jobs, by pool, as of the last registration.
    pub(crate) consumers: watch::Sender<BTreeMap<String, String>>,
    /// Tools that wait until an operator accepts them, with the reasons, as of the last registration.
    pub(crate) waiting: Mutex<BTreeMap<String, Vec<String>>>,
    lease_ms: AtomicU64,
    /// The last answer of a dispatcher; `None` before the registration.
    heard: watch::Sender<Option<Heard>>,
}

impl WorkerState {
    pub(crate) fn new(queue: Queue, named: Named, tools: Vec<Tool>, slots: Slots, reports: ReportSender) -> Self {
        Self {
            queue,
            id: named.id,
            pools: named.pools,
            host: named.host,
            started_at: Utc::now(),
            tools: tools.into_iter().map(|tool| (tool.spec.name.clone(), tool)).collect(),
            slots,
            attempts: ActiveAttempts::default(),
            reports,
            outputs: Shares::new(LARGE_OUTPUTS),
            draining: CancellationToken::new(),
            control_tasks: Loops::default(),
            tool_tasks: TaskTracker::new(),
            heartbeat_now: Notify::new(),
            register_now: Notify::new(),
            consumers: watch::Sender::new(BTreeMap::new()),
            waiting: Mutex::default(),
            heard: watch::Sender::new(None),
            lease_ms: AtomicU64::new(u64::try_from(FIRST_LEASE.as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// Stores which consumers bring the worker's jobs; its pull loops notice a change.
    pub(crate) fn set_consumers(&self, consumers: BTreeMap<String, String>) {
        self.consumers.send_if_modified(|known| {
            let changed = *known != consumers;
            *known = consumers;
            changed
        });
    }

    /// Returns how long a lease is, according to the last answer of a dispatcher.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms.load(Ordering::Relaxed))
    }

    /// Returns how long to wait for a dispatcher's reply. If the reply to a claim was lost, the worker must ask again
    /// well before the lease ends.
    pub(crate) fn request_timeout(&self) -> Duration {
        (self.lease() / 5).clamp(Duration::from_millis(100), Duration::from_secs(3))
    }

    /// Sends a request to any dispatcher; after failures, several copies of it.
    ///
    /// NATS delivers each copy to one dispatcher of the group, and a dispatcher that hangs, or whose database does,
    /// answers none. If one of two dispatchers hangs, single requests fail often enough in a row to lose leases.
    /// Requests are idempotent, so copies are harmless.
    pub(crate) async fn request<Q: Serialize, R: DeserializeOwned>(
        &self,
        verb: ControlVerb,
        request: &Q,
        failures: u32,
    ) -> Result<R, QueueError> {
        let copies = match failures {
            0 => 1,
            1 => 3,
            _ => 5,
        };
        let subject = self.subject(verb);
        let send = || Box::pin(self.queue.request(&subject, request, self.request_timeout()));
        select_ok(std::iter::repeat_with(send).take(copies)).await.map(|(reply, _)| reply)
    }

    pub(crate) fn subject(&self, verb: ControlVerb) -> String {
        subjects::control(&self.id.identity(), &self.pools, verb)
    }

    /// Returns the pause after this many failures of a request: short enough to try several times within a lease.
    pub(crate) fn pause(&self, failures: u32) -> Duration {
        pause_up_to((self.lease() / 10).min(Duration::from_secs(2)), failures)
    }

    /// Stores how long a lease is. A change wakes the heartbeat, which may be waiting for a third of a longer lease.
    pub(crate) fn set_lease(&self, lease_ms: u64) {
        // Shorter leases would flood the dispatchers with heartbeats, which come every third of a lease.
        let lease_ms = lease_ms.max(300);
        if self.lease_ms.swap(lease_ms, Ordering::Relaxed) != lease_ms {
            self.heartbeat_now.notify_one();
        }
    }

    /// Takes in the answer to a request that was sent then: what the database's clock showed, unless the worker is not known, and how
    /// long a lease is, which it returns.
    pub(crate) fn hear(&self, at: Option<DateTime<Utc>>, asked: Instant, lease_ms: u64) -> Duration {
        self.set_lease(lease_ms);
        let lease = self.lease();
        if let Some(at) = at {
            self.heard.send_replace(Some(Heard::now(at, asked, lease)));
        }
        lease
    }

    /// Returns until when a claim sent now is granted; `None` if no dispatcher answers: it must not be sent.
    pub(crate) fn claim_time(&self) -> Option<ClaimTime> {
        self.heard.borrow().as_ref()?.claim_time(Instant::now())
    }

    /// Returns what the database's clock shows now, if not more; `None` if no dispatcher has told it yet.
    pub(crate) fn database_time(&self) -> Option<DateTime<Utc>> {
        self.heard.borrow().as_ref().map(|heard| heard.at_least(Instant::now()))
    }

    /// Waits until claims may be sent.
    pub(crate) async fn may_claim(&self) {
        let may_claim = |heard: &Option<Heard>| heard.is_some_and(|heard| heard.claim_time(Instant::now()).is_some());
        // The sender lives as long as this.
        let _ = self.heard.subscribe().wait_for(may_claim).await;
    }

    /// Drops grants that are no longer this worker's, or whose reports are on record.
    pub(crate) fn forget(&self, grants: &[GrantRef]) {
        for grant in grants {
            self.attempts.remove(*grant);
        }
        self.reports.forget(grants.to_vec());
    }
}

/// Says whether a request that was refused would be refused again.
pub(crate) fn is_permanent(error: &QueueError) -> bool {
    matches!(error, QueueError::Api(error) if !error.code.is_retryable())
}

/// Returns how long before its end the worker treats a lease as expired, so that the tool has stopped when another
/// worker starts it.
pub(crate) fn margin(lease: Duration) -> Duration {
    (lease / 10).min(Duration::from_secs(1))
}

/// Returns about 100, 200, 400 … ms up to `cap`. `failures` counts from 1.
pub(crate) fn pause_up_to(cap: Duration, failures: u32) -> Duration {
    Backoff::new(Duration::from_millis(100), cap).after(failures)
}
