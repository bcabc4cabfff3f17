//! The state that all parts of a dispatcher share.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use redial_access::Access;
use redial_engine::outage::{Observation, OutageDetector};
use redial_loops::Loops;
use redial_queue::{LONGEST_RECONNECT, Queue, QueueConfig};
use redial_records::{NewCall, OutgoingJob};
use redial_reread::Reread;
use redial_shares::Shares;
use redial_store::{Store, Time};
use tokio::sync::{Notify, mpsc};

use crate::{
    agents::Agents,
    bodies::Bodies,
    config::DispatcherConfig,
    error::DispatcherError,
    feeder::Feeder,
    left_bytes::LeftBytes,
    publish::{self, Publishing},
    registry::Registry,
    wait::retry_transient,
    wake_set::WakeSet,
};

/// Dry runs of erasures that a dispatcher counts at once.
const COUNTS: usize = 2;
/// Registrations whose schemas are compiled at once.
const CHECKS: usize = 2;

/// The state that all parts of a dispatcher share. Nothing here outlives the process, and no other process needs it.
pub(crate) struct Context {
    pub(crate) config: DispatcherConfig,
    pub(crate) store: Store,
    /// Takes what only gateways and dispatchers send.
    pub(crate) queue: Queue,
    /// Takes what users send.
    pub(crate) users: Queue,
    /// Takes what workers send.
    pub(crate) workers: Queue,
    pub(crate) registry: Registry,
    pub(crate) agents: Agents,
    pub(crate) access: Reread<Access>,
    pub(crate) jobs: mpsc::Sender<OutgoingJob>,
    pub(crate) wake_set: WakeSet,
    /// Wakes the sweeper: something may be due sooner than it expects.
    pub(crate) due: Notify,
    /// Which jobs are published now, and where.
    pub(crate) feeder: Arc<Feeder>,
    /// Dry runs of erasures at once, by tenant: each keeps a connection to Postgres busy.
    pub(crate) counting: Shares,
    /// Checks of registrations at once, by worker identity: each keeps a processor busy.
    pub(crate) checking: Shares,
    /// Wakes the loop that carries out redrives.
    pub(crate) redrives: Notify,
    /// Wakes the loop that carries out erasures.
    pub(crate) erasures: Notify,
    pub(crate) publishing: Arc<Publishing>,
    /// Bodies that do not fit into one message.
    pub(crate) bodies: Bodies,
    /// Reports that are left to a newer version.
    pub(crate) left: LeftBytes,
    started: Instant,
    outages: Mutex<OutageDetector>,
}

impl Context {
    pub(crate) async fn connect(config: DispatcherConfig, loops: &Loops) -> Result<Arc<Self>, DispatcherError> {
        let agents = Agents::load(config.agents.clone()).await.map_err(DispatcherError::File)?;
        let access = Reread::load(config.access.clone(), "access file", Access::parse).await;
        let access = access.map_err(DispatcherError::File)?;
        let named =
            |whose: &str| QueueConfig { name: format!("{} {whose}", config.queue.name), ..config.queue.clone() };
        let queue = Queue::connect(&config.queue).await?;
        let users = Queue::connect(&named("of users")).await?;
        let workers = Queue::connect(&named("of workers")).await?;
        let store = Store::connect(&config.store()).await?;
        let registry = retry_transient(|| async { Ok(Registry::load(&store).await?) }).await?;
        let feeder = Arc::<Feeder>::default();
        let (jobs, publishing) = publish::start(&queue, &store, &feeder, loops);
        let outages = OutageDetector::new(config.lease, LONGEST_RECONNECT, Duration::ZERO);
        Ok(Arc::new(Self {
            config,
            store,
            queue,
            users,
            workers,
            registry,
            agents,
            access,
            jobs,
            wake_set: WakeSet::default(),
            due: Notify::new(),
            feeder,
            counting: Shares::new(COUNTS),
            checking: Shares::new(CHECKS),
            redrives: Notify::new(),
            erasures: Notify::new(),
            publishing,
            bodies: Bodies::default(),
            left: LeftBytes::default(),
            started: Instant::now(),
            outages: Mutex::new(outages),
        }))
    }

    pub(crate) const fn queues(&self) -> [&Queue; 3] {
        [&self.queue, &self.users, &self.workers]
    }

    /// Hands a job to the publisher. If the publisher is gone the process is stopping, and the sweeper of another
    /// dispatcher puts the call back into the backlog.
    pub(crate) async fn publish(&self, job: OutgoingJob) {
        let _ = self.jobs.send(job).await;
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn observe(&self, observation: Observation) {
        self.outages().observe(observation, self.uptime());
    }

    pub(crate) fn observe_clock(&self, now: Time) {
        let since_epoch = (now - Time::UNIX_EPOCH).to_std().unwrap_or_default();
        self.observe(Observation::DatabaseTime { since_epoch });
    }

    /// Returns the longest time between two checks of Postgres and NATS.
    pub(crate) fn check_interval(&self) -> Duration {
        self.outages().check_interval()
    }

    /// Returns for how long no lease counts as expired.
    pub(crate) fn grace(&self) -> Duration {
        self.outages().grace(self.uptime())
    }

    fn outages(&self) -> MutexGuard<'_, OutageDetector> {
        self.outages.lock()
    }

    /// Frees the room that was kept for the jobs of calls that were not written.
    pub(crate) fn not_published<'a>(&self, calls: impl Iterator<Item = &'a NewCall>) {
        self.feeder.arrived(calls.filter_map(|call| Some((call.consumer.as_deref()?, call.tool.as_str()))));
    }

    /// Returns the consumer that a new call's job is published to at once, keeping room for it; `None` if it waits.
    fn admit(&self, tool: &str, tenant: &str) -> Option<String> {
        if self.queue.is_connected() { self.feeder.admit(tool, tenant) } else { self.feeder.hold(tool, tenant) }
    }
    /// Admits a call that is about to be written; a refused one never runs, and the client serves its own functions.
    pub(crate) fn admit_new(&self, call: &NewCall) -> Option<String> {
        (call.refusal.is_none() && !call.is_of_client()).then(|| self.admit(&call.tool, &call.tenant)).flatten()
    }
}
