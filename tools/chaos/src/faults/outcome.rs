//! What a fault led to, and how long recovery took.

use std::time::Duration;

use crate::fixture::LEASE;

/// How long recovery may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The guarantee about recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    WorkerKilled,
    NatsBack,
    LeaderKilled,
    StoreWiped,
    PostgresBack,
    Promoted,
    HoleHealed,
    ToolBack,
    OutageOver,
    HostileClients,
    CountedBeside,
    /// The longest time in which nothing else was done while rows of calls were locked, for which a statement waits 4 s, once.
    RowsLocked,
    /// The longest time in which nothing else was done during a misuse.
    OthersGoOn,
}

impl Target {
    /// Each with its name in the report, and its limit in seconds.
    pub(crate) const ALL: [(Self, &str, u64); 13] = [
        (Self::WorkerKilled, "worker killed → its calls run again", LEASE.as_secs() + 2),
        (Self::NatsBack, "NATS back → a call completes", 3),
        (Self::LeaderKilled, "last leader killed → a call completes", 10),
        (Self::StoreWiped, "NATS back without its store → a call completes", 5),
        (Self::PostgresBack, "Postgres accepts connections → a submission is accepted", 1),
        (Self::Promoted, "standby promoted → a submission is accepted", 2),
        (Self::HoleHealed, "black hole healed → both ends hear each other", 10),
        (Self::ToolBack, "removed tool registered again → all its waiting calls run", 2),
        (Self::OutageOver, "tool back after a minute → all waiting calls have ended", 60),
        (Self::HostileClients, "hostile clients → the submission behind them has ended", 3),
        (Self::CountedBeside, "ends beside a long transaction → the statistics have them", 20),
        (Self::RowsLocked, "rows of calls locked → longest pause of the others", 6),
        (Self::OthersGoOn, "misuse of one → longest pause of the others", 2),
    ];
}

/// How the system recovered, the worst last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Recovery {
    /// There was nothing to measure.
    #[default]
    NotMeasured,
    /// This long after recovery was possible.
    After(Duration),
    /// Not in time.
    Never,
}

impl From<Option<Duration>> for Recovery {
    fn from(time: Option<Duration>) -> Self {
        time.map_or(Self::Never, Self::After)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) recovery: Recovery,
    /// What counts for targets.
    pub(crate) measured: Vec<(Target, Recovery)>,
    /// More about it.
    pub(crate) note: String,
    /// Why it could not be injected.
    pub(crate) skipped: Option<String>,
}

impl Outcome {
    pub(super) fn recovered(recovery: Option<Duration>) -> Self {
        Self { recovery: recovery.into(), ..Self::default() }
    }

    pub(super) fn counts_for(self, target: Target) -> Self {
        let recovery = self.recovery;
        self.with((target, recovery))
    }

    pub(super) fn with(mut self, measured: (Target, Recovery)) -> Self {
        self.measured.push(measured);
        self
    }

    pub(super) fn noted(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    pub(crate) fn is_down(&self) -> bool {
        self.measured.iter().map(|(_, recovery)| recovery).chain([&self.recovery]).any(|one| *one == Recovery::Never)
    }
}
