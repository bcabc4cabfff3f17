//! Which faults, in which order: a pure function of the seed.

mod fault;

use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

pub(crate) use fault::{Damage, Fault, Line, Redundancy, Victim};

pub(crate) const DISPATCHERS: usize = 2;
pub(crate) const WORKERS: usize = TOOL_WORKERS + 1;
/// Those of the main pool come first.
pub(crate) const TOOL_WORKERS: usize = 3;

/// A fault with its random parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) fault: Fault,
    /// In [0, 1000): how long it takes, within what is usual for the fault.
    pub(crate) measure: u32,
}

/// How often each kind occurs among 64 faults, and the order in which kinds are dropped for fewer faults. Each kind is
/// shown by one of its faults, whose parameters are drawn later.
const SHARES: [(Fault, usize); 23] = [
    (Fault::Kill(Victim::Worker(0)), 7),
    (Fault::HostileClients, 1),
    (Fault::KillLeaders, 1),
    (Fault::FailOver, 1),
    (Fault::Kill(Victim::Dispatcher(0)), 5),
    (Fault::Kill(Victim::Nats), 4),
    (Fault::Kill(Victim::Postgres), 4),
    (Fault::Freeze(Victim::Worker(0)), 3),
    (Fault::Freeze(Victim::Dispatcher(0)), 3),
    (Fault::WipeStore, 3),
    (Fault::LockCalls, 2),
    (Fault::LongTransaction, 1),
    (Fault::Line(Line::ClientToNats, Damage::BlackHole), 6),
    (Fault::WipeLiveStore, 2),
    (Fault::FillDisk, 2),
    (Fault::RollingRestart, 1),
    (Fault::RemoveTool, 1),
    (Fault::ToolOutage, 1),
    (Fault::Line(Line::ClientToNats, Damage::Cut), 2),
    (Fault::Line(Line::ClientToNats, Damage::Truncate), 3),
    (Fault::Line(Line::ClientToNats, Damage::LostServer), 3),
    (Fault::Freeze(Victim::Nats), 1),
    (Fault::Freeze(Victim::Postgres), 1),
];

/// Plans the faults of a run, only of kinds whose name contains one of the texts between commas; none if that fits no
/// kind. Each kind occurs at least once if there is room for that, then by its share; what is usual once is not
/// repeated beside others.
pub(crate) fn plan(seed: u64, faults: usize, only: &str, redundancy: Redundancy) -> Vec<Step> {
    let mut random = StdRng::seed_from_u64(seed);
    let wanted = |kind: Fault| only.split(',').any(|text| kind.kind().contains(text.trim()));
    let shares = || SHARES.iter().filter(|(kind, _)| kind.fits(redundancy) && wanted(*kind));
    let once = shares().map(|(kind, _)| *kind);
    let more = shares().flat_map(|(kind, share)| vec![*kind; share - 1]);
    let mut again: Vec<Fault> =
        shares().filter(|(_, share)| *share > 1).flat_map(|(kind, share)| vec![*kind; *share]).collect();
    if again.is_empty() {
        again = once.clone().collect();
    }
    let mut kinds: Vec<Fault> = once.chain(more).chain(again.into_iter().cycle()).take(faults).collect();
    kinds.shuffle(&mut random);
    let step = |(n, kind)| Step { fault: drawn(kind, n, &mut random), measure: random.random_range(0..1000) };
    kinds.into_iter().enumerate().map(step).collect()
}

/// Draws a fault of the kind, with process, line and damage.
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

/// Chooses a line; the kinds take turns.
fn any_line(n: usize, random: &mut StdRng) -> Line {
    match n % 4 {
        0 => Line::WorkerToNats(random.random_range(0..WORKERS)),
        1 => Line::DispatcherToNats(random.random_range(0..DISPATCHERS)),
        2 => Line::DispatcherToPostgres(random.random_range(0..DISPATCHERS)),
        _ => Line::ClientToNats,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SINGLE: Redundancy = Redundancy { cluster: false, standby: false };

    #[test]
    fn every_kind_occurs_in_a_usual_run_of_any_seed() {
        for seed in 0..50 {
            let kinds = |redundancy| {
                let steps = plan(seed, 64, "", redundancy);
                steps.iter().map(|step| step.fault.kind()).collect::<BTreeSet<String>>()
            };
            assert_eq!(kinds(SINGLE).len(), 21, "{:?}", kinds(SINGLE));
            let redundant = kinds(Redundancy { cluster: true, standby: true });
            assert_eq!(redundant.len(), 21, "{redundant:?}");
            assert!(redundant.contains("kill -9 leaders of streams") && redundant.contains("Postgres failover"));
        }
    }
}
