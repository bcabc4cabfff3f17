//! What the tasks of one worker share.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures_util::future::select_ok;
use redial_proto::{JobRef, WorkerId};
use redial_queue::{Queue, QueueError};
use redial_tools::Tool;
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{held::Held, report::Reports};

/// Until the first claim says how long a lease is, heartbeats go by this one: the dispatchers' default.
const FIRST_LEASE: Duration = Duration::from_secs(15);

pub(crate) struct Shared {
    pub(crate) queue: Queue,
    pub(crate) id: WorkerId,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) tools: HashMap<String, Tool>,
    pub(crate) slots: u32,
    pub(crate) held: Held,
    pub(crate) reports: Reports,
    /// Cancelled when no more jobs are to be taken.
    pub(crate) draining: CancellationToken,
    /// Claims and releases under way.
    pub(crate) claims: TaskTracker,
    /// Tools that run.
    pub(crate) attempts: TaskTracker,
    /// Wakes the heartbeat before its time.
    pub(crate) renew_now: Notify,
    /// Asks for an registration.
    pub(crate) register_now: Notify,
    lease_ms: AtomicU64,
}

/// The calls of one pool that this worker may run at once.
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) slots: Arc<Semaphore>,
    /// The same for tools that have a limit of their own.
    pub(crate) limits: HashMap<String, Arc<Semaphore>>,
}

/// The right to run one call; free again when dropped.
pub(crate) struct Slot {
    _pool: OwnedSemaphorePermit,
    _tool: Option<OwnedSemaphorePermit>,
}

/// Why there is no slot for a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// The pool runs as much as it may.
    Pool,
    /// The tool runs as much as it may.
    Tool,
}

impl Pool {
    /// A slot for a call of this tool, if there is one now.
    pub(crate) fn slot(&self, tool: &str) -> Result<Slot, Busy> {
        let permit = |slots: &Arc<Semaphore>| Arc::clone(slots).try_acquire_owned().ok();
        let of_tool = self.limits.get(tool).map(|limit| permit(limit).ok_or(Busy::Tool)).transpose()?;
        Ok(Slot { _pool: permit(&self.slots).ok_or(Busy::Pool)?, _tool: of_tool })
    }
}

impl Shared {
    pub(crate) fn new(queue: Queue, id: WorkerId, tools: Vec<Tool>, slots: u32, reports: Reports) -> Self {
        Self {
            queue,
            id,
            started_at: Utc::now(),
            tools: tools.into_iter().map(|tool| (tool.spec.name.clone(), tool)).collect(),
            slots,
            held: Held::default(),
            reports,
            draining: CancellationToken::new(),
            claims: TaskTracker::new(),
            attempts: TaskTracker::new(),
            renew_now: Notify::new(),
            register_now: Notify::new(),
            lease_ms: AtomicU64::new(u64::try_from(FIRST_LEASE.as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// How long a lease is, as the last claim said.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms.load(Ordering::Relaxed))
    }

    /// How long a dispatcher may take to answer. What it granted and could not say must be asked for again well within
    /// the lease.
    pub(crate) fn answer(&self) -> Duration {
        (self.lease() / 5).clamp(Duration::from_millis(100), Duration::from_secs(3))
    }

    /// Asks any dispatcher, after so many failures. Every copy of a question goes to any of them; one that stands still, or
    /// whose database does, answers none. With one of two gone, single questions would fail often enough in a row to lose
    /// leases. A dispatcher that hears the same twice says the same twice.
    pub(crate) async fn ask<Q: Serialize, R: DeserializeOwned>(
        &self,
        subject: &str,
        question: &Q,
        failures: u32,
    ) -> Result<R, QueueError> {
        let copies = match failures {
            0 => 1,
            1 => 3,
            _ => 5,
        };
        let ask = || Box::pin(self.queue.request(subject, question, self.answer()));
        select_ok(std::iter::repeat_with(ask).take(copies)).await.map(|(reply, _)| reply)
    }

    /// The longest pause between two tries to be answered, for the same reason.
    pub(crate) fn pause_cap(&self) -> Duration {
        (self.lease() / 10).min(Duration::from_secs(2))
    }

    /// A claim said how long a lease is. The heartbeat must know at once, if it counts on a longer one.
    pub(crate) fn set_lease(&self, lease_ms: u64) {
        // Under 300 ms a heartbeat every third of it would be a storm.
        let lease_ms = lease_ms.max(300);
        if self.lease_ms.swap(lease_ms, Ordering::Relaxed) != lease_ms {
            self.renew_now.notify_one();
        }
    }

    /// These attempts are not this worker's any more, or their reports are on record.
    pub(crate) fn forget(&self, jobs: &[JobRef]) {
        for job in jobs {
            self.held.forget(*job);
        }
        self.reports.forget(jobs.to_vec());
    }
}

/// A lease is taken for ended this much before its end, so that the tool is dead when another worker starts.
pub(crate) fn margin(lease: Duration) -> Duration {
    (lease / 10).min(Duration::from_secs(1))
}
