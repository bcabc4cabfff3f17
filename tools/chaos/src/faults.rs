//! Injecting faults, healing them, and measuring how long recovery takes.

mod lines;
mod processes;
mod stores;
mod work;

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

use crate::{
    client,
    fixture::Fixture,
    load,
    schedule::{Fault, Step, Victim},
};

/// How long recovery may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// A probe without an answer after this time is repeated.
const PROBE: Duration = Duration::from_millis(500);
/// The pause between two checks.
const LOOK: Duration = Duration::from_millis(20);
/// After an outage dispatchers wait so long for workers to connect again before they take leases for expired.
const RECONNECTION: Duration = Duration::from_secs(3);

/// The guarantee about recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    WorkerKilled,
    NatsBack,
    StoreWiped,
    PostgresBack,
    HoleHealed,
}

/// How the system recovered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// There was nothing to measure.
    #[default]
    NotMeasured,
    /// This long after recovery was possible.
    After(Duration),
    /// Not in time.
    Never,
}

/// The outcome of a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) recovery: Recovery,
    /// The target that this counts for.
    pub(crate) target: Option<Target>,
    /// More about it.
    pub(crate) note: String,
    /// Why it could not be injected.
    pub(crate) skipped: Option<String>,
}

impl Outcome {
    fn recovered(recovery: Option<Duration>) -> Self {
        Self { recovery: recovery.map_or(Recovery::Never, Recovery::After), ..Self::default() }
    }

    fn counts_for(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }

    fn noted(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }
}

/// Injects faults one after another.
pub(crate) struct Injector {
    pub(crate) fixture: Fixture,
    /// Leases are not taken for expired for a while after this.
    outage_ended: Option<Instant>,
    /// Calls that kill their workers, so far.
    poisoned: usize,
    probes: u64,
    /// Messages that were repeated.
    pub(crate) repeated: usize,
    /// When the fragile tool was down.
    pub(crate) tool_outages: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    /// When processes were restarted in turn.
    pub(crate) rolling: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    /// How long a rolling restart takes.
    pub(crate) rolling_time: Duration,
}

impl Injector {
    pub(crate) fn new(fixture: Fixture, rolling_time: Duration) -> Self {
        Self {
            fixture,
            // A dispatcher that has just started waits for workers, too.
            outage_ended: Some(Instant::now()),
            poisoned: 0,
            probes: 0,
            repeated: 0,
            tool_outages: Vec::new(),
            rolling: Vec::new(),
            rolling_time,
        }
    }

    /// Injects a fault, heals it, waits for recovery.
    pub(crate) async fn step(&mut self, step: &Step) -> anyhow::Result<Outcome> {
        if let Some(victim) = step.also {
            self.kill(victim).await?;
        }
        let mut outcome = self.inject(step).await?;
        if let Some(victim) = step.also {
            // There is no target for two faults at once.
            outcome.target = None;
            if let Victim::Dispatcher(n) = victim {
                self.fixture.dispatcher_is_ready(n).await;
            }
        }
        if outcome.recovery == Recovery::Never {
            self.fixture.diagnose().await;
        }
        if is_outage(step) {
            self.outage_ended = Some(Instant::now());
        }
        self.fixture.look_after().await?;
        Ok(outcome)
    }

    async fn inject(&mut self, step: &Step) -> anyhow::Result<Outcome> {
        match step.fault {
            Fault::Kill(Victim::Worker(n)) => self.kill_worker(n).await,
            Fault::Kill(Victim::Dispatcher(n)) => self.kill_dispatcher(n).await,
            Fault::Kill(Victim::Nats) => self.kill_nats(step).await,
            Fault::Kill(Victim::Postgres) => self.kill_postgres(step).await,
            Fault::Freeze(victim) => self.freeze(victim, step).await,
            Fault::WipeStore => self.wipe_store().await,
            Fault::WipeLiveStore => self.wipe_live_store(step).await,
            Fault::RollBackStore => self.roll_back_store().await,
            Fault::FillDisk => self.fill_disk(step).await,
            Fault::Line(line, damage) => self.damage(line, damage, step).await,
            Fault::RepeatReports => Ok(self.repeat_reports(step).await),
            Fault::RepeatJobs => Ok(self.repeat_jobs(step).await),
            Fault::PoisonCall => self.poison_call().await,
            Fault::ToolOutage => self.tool_outage(step).await,
            Fault::RollingRestart => self.rolling_restart().await,
        }
    }

    /// Waits until a call succeeds whose end was committed after this moment.
    async fn completion(&mut self, since: DateTime<Utc>) -> Option<Duration> {
        // There must be a call to complete even when clients submit nothing.
        self.probes += 1;
        let (control, probe) = (self.fixture.control.clone(), load::probe(self.probes));
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

/// How long it takes until something is so.
async fn reached(mut is_so: impl AsyncFnMut() -> bool) -> Option<Duration> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if is_so().await {
            return Some(began.elapsed());
        }
        tokio::time::sleep(LOOK).await;
    }
    None
}

/// A random time between two.
fn between(shortest: Duration, longest: Duration, step: &Step) -> Duration {
    shortest + longest.saturating_sub(shortest) * step.measure / 1000
}

/// Dispatchers may take this for an outage, and then wait for workers.
fn is_outage(step: &Step) -> bool {
    use crate::schedule::Line::{ClientToNats, WorkerToNats};
    let alone = step.also.is_none_or(|victim| matches!(victim, Victim::Worker(_)));
    let harmless = matches!(
        step.fault,
        Fault::Kill(Victim::Worker(_))
            | Fault::Freeze(Victim::Worker(_))
            | Fault::Line(ClientToNats | WorkerToNats(_), _)
            | Fault::RepeatReports
            | Fault::RepeatJobs
            | Fault::PoisonCall
            | Fault::ToolOutage
    );
    !(alone && harmless)
}
