//! Which faults, in which order: a pure function of the seed.

mod fault;
mod redundancy;

use std::fmt;

use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

pub(crate) use fault::{Damage, Fault, Line, Victim};
pub(crate) use redundancy::Redundancy;

/// Dispatchers of the run.
pub(crate) const DISPATCHERS: usize = 2;
/// Workers of the run.
pub(crate) const WORKERS: usize = TOOL_WORKERS + 1;
/// Those of the main pool come first.
pub(crate) const TOOL_WORKERS: usize = 3;

/// A fault with its random parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) fault: Fault,
    /// A second fault at the same moment: a process that is killed.
    pub(crate) also: Option<Victim>,
    /// In [0, 1000): how long it takes, within what is usual for the fault.
    pub(crate) measure: u32,
}

/// How often each kind occurs among 64 faults, and the order in which kinds are dropped for fewer faults. Each kind is
/// shown by one of its faults, whose parameters are drawn later.
const SHARES: [(Fault, usize); 32] = [
    (Fault::Kill(Victim::Worker(0)), 2),
    (Fault::HostileClients, 1),
    (Fault::KillLeaders, 1),
    (Fault::FailOver, 1),
    (Fault::Kill(Victim::Dispatcher(0)), 5),
    (Fault::Kill(Victim::Nats), 4),
    (Fault::Kill(Victim::Postgres), 4),
    (Fault::Freeze(Victim::Worker(0)), 3),
    (Fault::Freeze(Victim::Dispatcher(0)), 3),
    (Fault::WipeStore, 3),
    (Fault::RollBackStore, 2),
    (Fault::Line(Line::ClientToNats, Damage::BlackHole), 6),
    (Fault::WipeLiveStore, 2),
    (Fault::FillDisk, 2),
    (Fault::PoisonCall, 1),
    (Fault::ToolOutage, 1),
    (Fault::RollingRestart, 1),
    (Fault::RemoveTool, 1),
    (Fault::ScaleToZero, 1),
    (Fault::BackloggedOutage, 1),
    (Fault::HalfAPool, 1),
    (Fault::RejectedBatch, 1),
    (Fault::GiantConversation, 1),
    (Fault::HostileMessages, 1),
    (Fault::RepeatReports, 2),
    (Fault::Line(Line::ClientToNats, Damage::Cut), 2),
    (Fault::Line(Line::ClientToNats, Damage::Truncate), 3),
    (Fault::Line(Line::ClientToNats, Damage::LostServer), 3),
    (Fault::Freeze(Victim::Nats), 1),
    (Fault::Freeze(Victim::Postgres), 1),
    (Fault::Line(Line::ClientToNats, Damage::Delay), 2),
    (Fault::RepeatJobs, 1),
];

/// Worker kills come three at a time: the first may fall into the time after an outage, in which leases are not taken for
/// expired; the others show how fast a loss is noticed.
const KILLS_IN_A_ROW: usize = 3;

/// The faults of a run, of some kinds only if there is a text that says which; none if that fits no kind.
pub(crate) fn plan(seed: u64, faults: usize, only: &str, redundancy: Redundancy) -> Vec<Step> {
    if only.is_empty() {
        return all(seed, faults, redundancy);
    }
    let mut steps = Vec::new();
    // How often each kind occurs among so many.
    for round in 0..u64::try_from(faults).unwrap_or(u64::MAX) {
        let more = all(seed.wrapping_add(round), 64, redundancy).into_iter().filter(|step| is_wanted(step, only));
        steps.extend(more);
        if steps.is_empty() || steps.len() >= faults {
            break;
        }
    }
    steps.truncate(faults);
    steps
}

/// True if the kind contains one of the texts between commas.
fn is_wanted(step: &Step, only: &str) -> bool {
    only.split(',').any(|text| step.fault.kind().contains(text.trim()))
}

fn all(seed: u64, faults: usize, redundancy: Redundancy) -> Vec<Step> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut kinds = kinds(faults, redundancy);
    kinds.shuffle(&mut random);
    // The outage of a tool leaves calls that wait for their retry for a long time: it comes early.
    if let Some(place) = kinds.iter().position(|kind| *kind == Fault::ToolOutage) {
        kinds.swap(place, 0);
    }
    let mut steps = Vec::new();
    for (n, kind) in kinds.into_iter().enumerate() {
        for _ in 0..times(kind) {
            steps.push(step(kind, n, &mut random));
        }
    }
    steps.truncate(faults);
    steps
}

/// So many kinds by their shares, each at least once if there is room for that.
fn kinds(faults: usize, redundancy: Redundancy) -> Vec<Fault> {
    let shares = || SHARES.iter().filter(|(kind, _)| kind.fits(redundancy));
    let once = shares().map(|(kind, _)| *kind);
    let more = shares().flat_map(|(kind, share)| vec![*kind; share - 1]);
    let again = shares().filter(|(_, share)| *share > 1).flat_map(|(kind, share)| vec![*kind; *share]);
    let endless = once.chain(more).chain(again.collect::<Vec<_>>().into_iter().cycle());
    let (mut room, mut kinds) = (faults, Vec::new());
    for kind in endless {
        if room == 0 {
            break;
        }
        // One that is cut off at the end of the schedule would be another kind, which may occur only once.
        if times(kind) <= room || kinds.is_empty() {
            room = room.saturating_sub(times(kind));
            kinds.push(kind);
        }
    }
    kinds
}

/// How many faults in a row a kind means.
const fn times(kind: Fault) -> usize {
    if matches!(kind, Fault::Kill(Victim::Worker(_))) { KILLS_IN_A_ROW } else { 1 }
}

/// A fault of a kind; sometimes a second one at the same moment.
fn step(kind: Fault, n: usize, random: &mut StdRng) -> Step {
    let fault = drawn(kind, n, random);
    let alone = matches!(
        kind,
        Fault::Kill(Victim::Worker(_))
            | Fault::Freeze(Victim::Worker(_))
            | Fault::PoisonCall
            | Fault::ToolOutage
            | Fault::RollingRestart
            | Fault::KillLeaders
            | Fault::FailOver
    ) || kind.is_misuse();
    let kills_dispatcher = matches!(kind, Fault::Kill(Victim::Dispatcher(_)));
    let also = (!alone && random.random_range(0..6) == 0).then(|| match random.random_range(0..3) {
        0 if !kills_dispatcher => Victim::Dispatcher(random.random_range(0..DISPATCHERS)),
        _ => Victim::Worker(random.random_range(0..WORKERS)),
    });
    Step { fault, also, measure: random.random_range(0..1000) }
}

/// A fault of the kind, whose process, line and damage are drawn.
fn drawn(kind: Fault, n: usize, random: &mut StdRng) -> Fault {
    let worker = random.random_range(0..WORKERS);
    let dispatcher = random.random_range(0..DISPATCHERS);
    let victim = |victim| match victim {
        Victim::Worker(_) => Victim::Worker(worker),
        Victim::Dispatcher(_) => Victim::Dispatcher(dispatcher),
        other => other,
    };
    match kind {
        Fault::Kill(one) => Fault::Kill(victim(one)),
        Fault::Freeze(one) => Fault::Freeze(victim(one)),
        Fault::Line(_, damage) => {
            let alike: &[Damage] = match damage {
                Damage::BlackHole => &[Damage::BlackHole, Damage::DeafServer, Damage::DeafClient],
                Damage::LostServer => &[Damage::LostServer, Damage::LostClient],
                _ => &[damage],
            };
            let damage = if alike.len() > 1 { alike[random.random_range(0..alike.len())] } else { damage };
            Fault::Line(any_line(n, random), damage)
        }
        other => other,
    }
}

/// The kinds of lines take turns.
fn any_line(n: usize, random: &mut StdRng) -> Line {
    match n % 4 {
        0 => Line::WorkerToNats(random.random_range(0..WORKERS)),
        1 => Line::DispatcherToNats(random.random_range(0..DISPATCHERS)),
        2 => Line::DispatcherToPostgres(random.random_range(0..DISPATCHERS)),
        _ => Line::ClientToNats,
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)?;
        self.also.map_or(Ok(()), |victim| write!(f, ", and kill -9 {victim}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SINGLE: Redundancy = Redundancy { cluster: false, standby: false };

    #[test]
    fn a_seed_is_a_schedule() {
        assert_eq!(all(7, 64, SINGLE), all(7, 64, SINGLE));
        assert_ne!(all(7, 64, SINGLE), all(8, 64, SINGLE));
    }

    #[test]
    fn every_kind_occurs_in_a_usual_run_of_any_seed() {
        for seed in 0..50 {
            let kinds = |redundancy| {
                let steps = all(seed, 64, redundancy);
                steps.iter().map(|step| step.fault.kind()).collect::<BTreeSet<String>>()
            };
            assert_eq!(kinds(SINGLE).len(), 30, "{:?}", kinds(SINGLE));
            let redundant = kinds(Redundancy { cluster: true, standby: true });
            assert_eq!(redundant.len(), 29, "{redundant:?}");
            assert!(redundant.contains("kill -9 leaders of streams") && redundant.contains("Postgres failover"));
        }
    }

    #[test]
    fn some_kinds_only() {
        let steps = plan(1, 5, "disk", SINGLE);
        assert!(steps.len() == 5 && steps.iter().all(|step| step.fault == Fault::FillDisk), "{steps:?}");
        assert_eq!(plan(1, 5, "no such fault", SINGLE), []);
        assert_eq!(plan(1, 5, "failover", SINGLE), [], "there is no standby");
        assert_eq!(plan(1, 5, "rolling", SINGLE).len(), 5);
        let both: BTreeSet<String> = plan(1, 30, "disk, poison", SINGLE).iter().map(|step| step.fault.kind()).collect();
        assert_eq!(both.into_iter().collect::<Vec<_>>(), ["NATS disk full", "poison call"]);
    }

    #[test]
    fn there_are_as_many_as_asked_for() {
        for faults in [1, 2, 3, 10, 60, 64, 500] {
            assert_eq!(all(1, faults, SINGLE).len(), faults);
        }
        for long in [Fault::RollingRestart, Fault::BackloggedOutage] {
            let times = all(3, 500, SINGLE).iter().filter(|step| step.fault == long).count();
            assert_eq!(times, 1, "a minute each");
        }
    }

    #[test]
    fn misuse_comes_alone() {
        let misuse = |kind: &str| ["tool", "pool", "batch", "giant", "hostile"].iter().any(|text| kind.contains(text));
        let steps: Vec<Step> = (0..50).flat_map(|seed| all(seed, 64, SINGLE)).collect();
        let found: BTreeSet<_> = steps.iter().map(|step| step.fault.kind()).filter(|kind| misuse(kind)).collect();
        assert_eq!(found.len(), 9, "{found:?}");
        assert!(steps.iter().all(|step| step.also.is_none() || !misuse(&step.fault.kind())));
    }
}
