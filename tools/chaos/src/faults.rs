//! Injecting faults, healing them, and measuring how long recovery takes.

mod clients;
mod failover;
mod leaders;
mod lines;
mod outcome;
mod processes;
mod pulse;
mod serving;
mod stores;
mod submit;
mod transactions;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use redial_proto::{CallId, Submission};

pub(crate) use outcome::{Outcome, PATIENCE, Recovery, Target};

use crate::{
    client,
    fixture::Fixture,
    load,
    schedule::{Fault, Step, Victim},
};

/// A probe without an answer after this time is repeated.
const PROBE: Duration = Duration::from_millis(500);
/// The pause between two checks.
const LOOK: Duration = Duration::from_millis(20);
/// After an outage dispatchers wait so long for workers to connect again before they take leases for expired.
const RECONNECTION: Duration = Duration::from_secs(3);

/// Injects faults one after another.
pub(crate) struct Injector {
    pub(crate) fixture: Fixture,
    /// Leases are not taken for expired for a while after this.
    outage_ended: Option<Instant>,
    probes: Arc<AtomicU64>,
    /// Calls, conversations and the like of faults, so far.
    made: u64,
    /// Calls that faults submitted and that were acknowledged, with their keys.
    pub(crate) calls: Vec<(CallId, Option<String>)>,
    /// The same of the intake stream, which names no calls.
    pub(crate) intake_keys: Vec<String>,
    /// What misuse led to, and must not.
    pub(crate) wrong: Vec<String>,
    /// How long faults take that take a minute in a usual run.
    minute: Duration,
}

impl Injector {
    pub(crate) fn new(fixture: Fixture, minute: Duration) -> Self {
        Self {
            fixture,
            // A dispatcher that has just started waits for workers, too.
            outage_ended: Some(Instant::now()),
            probes: Arc::default(),
            made: 0,
            calls: Vec::new(),
            intake_keys: Vec::new(),
            wrong: Vec::new(),
            minute,
        }
    }

    /// Injects a fault, heals it, waits for recovery.
    pub(crate) async fn step(&mut self, step: &Step) -> anyhow::Result<Outcome> {
        let outcome = self.inject(step).await?;
        if outcome.is_down() {
            self.fixture.diagnose().await;
        }
        if is_outage(step) {
            self.outage_ended = Some(Instant::now());
        }
        self.fixture.look_after().await;
        Ok(outcome)
    }

    async fn inject(&mut self, step: &Step) -> anyhow::Result<Outcome> {
        match step.fault {
            Fault::Kill(Victim::Worker(n)) => self.kill_worker(n).await,
            Fault::Kill(Victim::Dispatcher(n)) => self.kill_dispatcher(n).await,
            Fault::Kill(Victim::Nats) => self.kill_nats(step).await,
            Fault::Kill(Victim::Postgres) => self.kill_postgres(step).await,
            Fault::Freeze(victim) => self.freeze(victim, step).await,
            Fault::KillLeaders => self.kill_leaders().await,
            Fault::FailOver => self.fail_over(step).await,
            Fault::WipeStore => self.wipe_store().await,
            Fault::WipeLiveStore => self.wipe_live_store(step).await,
            Fault::FillDisk => self.fill_disk(step).await,
            Fault::LockCalls => self.lock_calls(step).await,
            Fault::LongTransaction => self.long_transaction().await,
            Fault::Line(line, damage) => self.damage(line, damage, step).await,
            Fault::RollingRestart => self.rolling_restart().await,
            Fault::RemoveTool => self.remove_tool().await,
            Fault::ToolOutage => self.tool_outage().await,
            Fault::HostileClients => self.hostile_clients().await,
        }
    }

    /// Makes a new call that tests whether calls are accepted and run.
    fn probe(&self) -> Submission {
        load::probe(self.probes.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns a number that no other call, task or conversation of a fault has.
    fn number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Waits until a call succeeds whose end was committed after this moment.
    async fn completion(&mut self, since: DateTime<Utc>) -> Option<Duration> {
        // There must be a call to complete even when clients submit nothing.
        let (control, probe) = (self.fixture.control.clone(), self.probe());
        let probing = tokio::spawn(async move {
            while client::submit_once(&control, &probe, PROBE).await.is_none() {
                tokio::time::sleep(LOOK).await;
            }
        });
        let recovery = reached(async || self.fixture.observer.completed_since(since).await == Some(true)).await;
        probing.abort();
        recovery
    }
}

/// Measures how long it takes until something is so.
async fn reached(is_so: impl AsyncFnMut() -> bool) -> Option<Duration> {
    reached_within(PATIENCE, is_so).await
}

async fn reached_within(patience: Duration, mut is_so: impl AsyncFnMut() -> bool) -> Option<Duration> {
    let began = Instant::now();
    while began.elapsed() < patience {
        if is_so().await {
            return Some(began.elapsed());
        }
        tokio::time::sleep(LOOK).await;
    }
    None
}

/// Returns a random time between two.
fn between(shortest: Duration, longest: Duration, step: &Step) -> Duration {
    shortest + longest.saturating_sub(shortest) * step.measure / 1000
}

/// True if dispatchers may take this for an outage, and then wait for workers.
fn is_outage(step: &Step) -> bool {
    use crate::schedule::Line::{ClientToNats, WorkerToNats};
    !matches!(
        step.fault,
        Fault::Kill(Victim::Worker(_))
            | Fault::Freeze(Victim::Worker(_))
            | Fault::Line(ClientToNats | WorkerToNats(_), _)
            | Fault::LockCalls
            | Fault::LongTransaction
            | Fault::RemoveTool
            | Fault::ToolOutage
            | Fault::HostileClients
    )
}
