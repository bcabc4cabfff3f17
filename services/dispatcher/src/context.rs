//! What all parts of a dispatcher share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use redial_queue::{LONGEST_RECONNECT, Queue};
use redial_records::OutgoingJob;
use redial_store::Store;
use tokio::sync::{Notify, mpsc};
use tokio_util::task::TaskTracker;

use crate::{
    agents::Agents, config::DispatcherConfig, error::DispatcherError, publish, registry::Registry, wait::patiently,
    wake_set::WakeSet,
};

/// What all parts of a dispatcher share. Nothing here outlives the process or is needed by another one.
pub(crate) struct Context {
    pub(crate) config: DispatcherConfig,
    pub(crate) store: Store,
    pub(crate) queue: Queue,
    pub(crate) registry: Registry,
    pub(crate) agents: Agents,
    /// Jobs to publish.
    pub(crate) jobs: mpsc::Sender<OutgoingJob>,
    /// Tasks to advance.
    pub(crate) wake_set: WakeSet,
    /// Wakes the sweeper: something may be due sooner than it expects.
    pub(crate) due: Notify,
    /// Since when Postgres and NATS were reached without a break.
    well_since: Mutex<Instant>,
    /// When the last look that found both well began.
    looked_at: Mutex<Instant>,
    /// Successes per tool since the sweeper last credited them to the tools' retry budgets.
    successes: Mutex<HashMap<String, f64>>,
    /// Pools whose queue held unpulled jobs when that was last looked at.
    queued: Mutex<HashMap<String, bool>>,
}

impl Context {
    pub(crate) async fn connect(config: DispatcherConfig, tasks: &TaskTracker) -> Result<Arc<Self>, DispatcherError> {
        let agents = Agents::load(config.agents.clone()).await.map_err(DispatcherError::Agents)?;
        let queue = Queue::connect(&config.queue).await?;
        let store = Store::connect(&config.store()).await?;
        let registry = patiently(|| async { Ok(Registry::load(&store).await?) }).await?;
        let jobs = publish::start(&queue, tasks);
        Ok(Arc::new(Self {
            config,
            store,
            queue,
            registry,
            agents,
            jobs,
            wake_set: WakeSet::default(),
            due: Notify::new(),
            well_since: Mutex::new(Instant::now()),
            looked_at: Mutex::new(Instant::now()),
            successes: Mutex::default(),
            queued: Mutex::default(),
        }))
    }

    /// Hands a job to the publisher. If the publisher is gone the process is stopping, and the sweeper of another
    /// dispatcher publishes the job later.
    pub(crate) async fn publish(&self, job: OutgoingJob) {
        let _ = self.jobs.send(job).await;
    }

    /// Postgres or NATS could not be reached.
    pub(crate) fn note_outage(&self) {
        *self.well_since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Between two looks at both, at most: what stands still must be noticed before a lease ends that nobody could renew.
    pub(crate) fn look_interval(&self) -> Duration {
        Duration::from_secs(1).min(self.config.lease / 3)
    }

    /// A look that began then found Postgres and NATS well.
    pub(crate) fn note_well(&self, began: Instant) {
        *self.looked_at.lock().unwrap_or_else(PoisonError::into_inner) = began;
    }

    /// A look has begun and does not end: a server stands still, though nothing has failed yet.
    pub(crate) fn looks_hung(&self) -> bool {
        let looked_at = *self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        looked_at.elapsed() > self.look_interval() + self.config.lease / 3
    }

    /// How long no lease is taken for expired: workers that were cut off by an outage, or found no dispatcher, get the
    /// time to connect again, and then a whole lease to renew or release what they hold.
    pub(crate) fn grace(&self) -> Duration {
        let well_since = *self.well_since.lock().unwrap_or_else(PoisonError::into_inner);
        (LONGEST_RECONNECT + self.config.lease).saturating_sub(well_since.elapsed())
    }

    pub(crate) fn count_success(&self, tool: &str) {
        let mut successes = self.successes.lock().unwrap_or_else(PoisonError::into_inner);
        match successes.get_mut(tool) {
            Some(count) => *count += 1.0,
            None => drop(successes.insert(tool.to_owned(), 1.0)),
        }
    }

    /// Takes the successes of a tool that were not credited yet.
    pub(crate) fn take_successes(&self, tool: &str) -> f64 {
        self.successes.lock().unwrap_or_else(PoisonError::into_inner).remove(tool).unwrap_or(0.0)
    }

    pub(crate) fn set_queued(&self, pool: &str, queued: bool) {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner).insert(pool.to_owned(), queued);
    }

    /// True if jobs of the pool were still waiting on the stream, or nobody knows because NATS does not answer.
    pub(crate) fn is_queued(&self, pool: &str) -> bool {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner).get(pool).copied().unwrap_or(true)
    }
}
