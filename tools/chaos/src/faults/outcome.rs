//! What a fault led to, and how long recovery took.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::watchdog::Standstills;

/// How long recovery may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The guarantee about recovery. `report/targets.rs` has the limits.
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
    PoolBack,
    OutageOver,
    HalfServed,
    EveryoneWorks,
    BatchRejected,
    GiantConversation,
    HostileMessages,
    HostileClients,
    /// The longest time in which nothing else was done during a misuse.
    OthersGoOn,
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

impl From<Option<Duration>> for Recovery {
    fn from(time: Option<Duration>) -> Self {
        time.map_or(Self::Never, Self::After)
    }
}

/// A recovery that counts for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measured {
    pub(crate) target: Target,
    pub(crate) recovery: Recovery,
    /// When the measurement was over.
    pub(crate) until: DateTime<Utc>,
}

impl Measured {
    /// True if the machine is to blame: it stood still during the recovery, or, if there was none, for half of the last
    /// 30 s that it had.
    pub(crate) fn is_excused(&self, machine: &Standstills) -> bool {
        is_excused(self.recovery, self.until, machine)
    }
}

fn is_excused(recovery: Recovery, until: DateTime<Utc>, machine: &Standstills) -> bool {
    match recovery {
        Recovery::NotMeasured => false,
        Recovery::After(time) => !machine.within(until - time, until).is_zero(),
        Recovery::Never => machine.within(until - PATIENCE, until) >= PATIENCE / 2,
    }
}

/// The outcome of a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) recovery: Recovery,
    /// When it was over.
    pub(crate) until: DateTime<Utc>,
    /// What counts for targets.
    pub(crate) measured: Vec<Measured>,
    /// More about it.
    pub(crate) note: String,
    /// Why it could not be injected.
    pub(crate) skipped: Option<String>,
}

impl Outcome {
    /// A recovery that is just over.
    pub(super) fn recovered(recovery: Option<Duration>) -> Self {
        Self { recovery: recovery.into(), until: Utc::now(), ..Self::default() }
    }

    /// Its recovery counts for a target.
    pub(super) fn counts_for(self, target: Target) -> Self {
        let measured = Measured { target, recovery: self.recovery, until: self.until };
        self.with(measured)
    }

    /// Something else that was measured.
    pub(super) fn with(mut self, measured: Measured) -> Self {
        self.measured.push(measured);
        self
    }

    pub(super) fn noted(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// Everything that was measured.
    pub(crate) fn recoveries(&self) -> impl Iterator<Item = Recovery> {
        self.measured.iter().map(|measured| measured.recovery).chain([self.recovery])
    }

    /// There was no recovery, and the machine is not to blame.
    pub(crate) fn accuses(&self, machine: &Standstills) -> bool {
        let own = self.recovery == Recovery::Never && !is_excused(self.recovery, self.until, machine);
        let never = |one: &&Measured| one.recovery == Recovery::Never;
        own || self.measured.iter().filter(never).any(|measured| !measured.is_excused(machine))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watchdog::Window;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + chrono::TimeDelta::seconds(seconds)
    }

    fn machine(windows: &[(i64, i64)]) -> Standstills {
        let windows = windows.iter().map(|(from, until)| Window { from: at(*from), until: at(*until) });
        Standstills::of(at(0), at(1_000), windows)
    }

    #[test]
    fn a_recovery_across_a_standstill_is_excused() {
        let after = |seconds| Recovery::After(Duration::from_secs(seconds));
        let machine = machine(&[(100, 101)]);
        assert!(is_excused(after(3), at(103), &machine));
        assert!(!is_excused(after(2), at(103), &machine), "it began when the machine ran again");
        assert!(!is_excused(after(3), at(100), &machine), "it was over before");
        assert!(!is_excused(Recovery::NotMeasured, at(100), &machine));
    }

    #[test]
    fn no_recovery_is_excused_only_by_a_machine_that_stood_still_for_most_of_it() {
        let never = Outcome { recovery: Recovery::Never, until: at(130), ..Outcome::default() };
        assert!(never.accuses(&machine(&[])));
        assert!(never.accuses(&machine(&[(100, 114)])));
        assert!(!never.accuses(&machine(&[(100, 106), (110, 119)])));
        let well = Outcome { recovery: Recovery::After(Duration::ZERO), until: at(130), ..Outcome::default() };
        assert!(!well.accuses(&machine(&[])));
        let measured = Measured { target: Target::ToolBack, recovery: Recovery::Never, until: at(130) };
        assert!(well.with(measured).accuses(&machine(&[])));
    }
}
