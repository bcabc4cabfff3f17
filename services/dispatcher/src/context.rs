//! The state that all parts of a dispatcher share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use redial_engine::outage::{Observation, OutageDetector};
use redial_queue::{LONGEST_RECONNECT, Queue};
use redial_records::OutgoingJob;
use redial_store::Store;
use tokio::sync::{Notify, mpsc};
use tokio_util::task::TaskTracker;

use crate::{
    agents::Agents, config::DispatcherConfig, error::DispatcherError, publish, registry::Registry,
    wait::retry_transient, wake_set::WakeSet,
};

/// The state that all parts of a dispatcher share. Nothing here outlives the process, and no other process needs it.
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
    started: Instant,
    outages: Mutex<OutageDetector>,
    /// Successes per tool since the sweeper last credited them to the tools' retry budgets.
    successes: Mutex<HashMap<String, f64>>,
    /// Pools, and whether their queue held unpulled jobs at the last check.
    queued: Mutex<HashMap<String, bool>>,
}

impl Context {
    pub(crate) async fn connect(config: DispatcherConfig, tasks: &TaskTracker) -> Result<Arc<Self>, DispatcherError> {
        let agents = Agents::load(config.agents.clone()).await.map_err(DispatcherError::Agents)?;
        let queue = Queue::connect(&config.queue).await?;
        let store = Store::connect(&config.store()).await?;
        let registry = retry_transient(|| async { Ok(Registry::load(&store).await?) }).await?;
        let jobs = publish::start(&queue, tasks);
        let outages = OutageDetector::new(config.lease, LONGEST_RECONNECT, Duration::ZERO);
        Ok(Arc::new(Self {
            config,
            store,
            queue,
            registry,
            agents,
            jobs,
            wake_set: WakeSet::default(),
            due: Notify::new(),
            started: Instant::now(),
            outages: Mutex::new(outages),
            successes: Mutex::default(),
            queued: Mutex::default(),
        }))
    }

    /// Hands a job to the publisher. If the publisher is gone the process is stopping, and the sweeper of another
    /// dispatcher publishes the job later.
    pub(crate) async fn publish(&self, job: OutgoingJob) {
        let _ = self.jobs.send(job).await;
    }

    /// How long this dispatcher has been running.
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Reports something about Postgres or NATS.
    pub(crate) fn observe(&self, observation: Observation) {
        self.outages().observe(observation, self.uptime());
    }

    /// The longest time between two checks of Postgres and NATS.
    pub(crate) fn check_interval(&self) -> Duration {
        self.outages().check_interval()
    }

    /// For how long no lease counts as expired.
    pub(crate) fn grace(&self) -> Duration {
        self.outages().grace(self.uptime())
    }

    fn outages(&self) -> MutexGuard<'_, OutageDetector> {
        self.outages.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// True if jobs of the pool were still on the stream at the last check, or if there was none yet.
    pub(crate) fn is_queued(&self, pool: &str) -> bool {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner).get(pool).copied().unwrap_or(true)
    }
}
