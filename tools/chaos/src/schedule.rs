//! Which faults, in which order: a pure function of the seed.

use std::fmt;

use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

/// Dispatchers of the run.
pub(crate) const DISPATCHERS: usize = 2;
/// Workers of the run.
pub(crate) const WORKERS: usize = 3;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// `kill -9`, then a new one.
    Kill(Victim),
    /// SIGSTOP for longer than a lease, then SIGCONT.
    Freeze(Victim),
    /// NATS killed, its store removed, started again.
    WipeStore,
    /// The store removed under the running NATS, which is killed and started again a little later.
    WipeLiveStore,
    /// NATS killed, an older copy of its store put in place, started again.
    RollBackStore,
    /// The disk of NATS is full for a while.
    FillDisk,
    /// A broken connection.
    Line(Line, Damage),
    /// Captured reports of workers arrive again, some of them for the third time.
    RepeatReports,
    /// The same with jobs.
    RepeatJobs,
    /// A call that kills its worker in each attempt.
    PoisonCall,
    /// One tool fails each time for a while.
    ToolOutage,
    /// SIGTERM and a new process for each process in turn, repeatedly.
    RollingRestart,
}

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Victim {
    Dispatcher(usize),
    Worker(usize),
    Nats,
    Postgres,
}

/// A connection, which runs through a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Line {
    WorkerToNats(usize),
    DispatcherToNats(usize),
    DispatcherToPostgres(usize),
    ClientToNats,
}

/// How a connection is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Damage {
    /// Closed.
    Cut,
    /// Closed in the middle of a message.
    Truncate,
    /// Each piece of data is late.
    Delay,
    /// Nothing passes in either direction, and nothing is closed.
    BlackHole,
    /// Nothing passes to the server.
    DeafServer,
    /// Nothing passes to the client.
    DeafClient,
    /// The server's end is closed, and the client is not notified.
    LostServer,
    /// The client's end is closed, and the server is not notified.
    LostClient,
}

/// A fault with its random parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) fault: Fault,
    /// A second fault at the same moment: a process that is killed.
    pub(crate) also: Option<Victim>,
    /// In [0, 1000): how long it takes, within what is usual for the fault.
    pub(crate) measure: u32,
}

/// How often each kind occurs among 64 faults, and the order in which kinds are dropped for fewer faults.
const SHARES: [(Kind, usize); 22] = [
    (Kind::KillWorker, 2),
    (Kind::KillDispatcher, 6),
    (Kind::KillNats, 5),
    (Kind::KillPostgres, 5),
    (Kind::FreezeWorker, 3),
    (Kind::FreezeDispatcher, 3),
    (Kind::WipeStore, 3),
    (Kind::RollBackStore, 2),
    (Kind::Hole, 8),
    (Kind::WipeLiveStore, 2),
    (Kind::FillDisk, 2),
    (Kind::PoisonCall, 1),
    (Kind::ToolOutage, 1),
    (Kind::RollingRestart, 1),
    (Kind::RepeatReports, 3),
    (Kind::Cut, 3),
    (Kind::Truncate, 3),
    (Kind::HalfOpen, 3),
    (Kind::FreezeNats, 1),
    (Kind::FreezePostgres, 1),
    (Kind::Delay, 2),
    (Kind::RepeatJobs, 1),
];

/// Worker kills come three at a time: the first may fall into the time after an outage, in which leases are not taken for
/// expired; the others show how fast a loss is noticed.
const KILLS_IN_A_ROW: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    KillWorker,
    KillDispatcher,
    KillNats,
    KillPostgres,
    FreezeWorker,
    FreezeDispatcher,
    FreezeNats,
    FreezePostgres,
    WipeStore,
    WipeLiveStore,
    RollBackStore,
    FillDisk,
    Hole,
    HalfOpen,
    Cut,
    Truncate,
    Delay,
    RepeatReports,
    RepeatJobs,
    PoisonCall,
    ToolOutage,
    RollingRestart,
}

/// The faults of a run, of some kinds only if there is a text that says which; none if that fits no kind.
pub(crate) fn plan(seed: u64, faults: usize, only: &str) -> Vec<Step> {
    if only.is_empty() {
        return all(seed, faults);
    }
    let mut steps = Vec::new();
    // How often each kind occurs among so many.
    for round in 0..u64::try_from(faults).unwrap_or(u64::MAX) {
        let more = all(seed.wrapping_add(round), 64).into_iter().filter(|step| is_wanted(step, only));
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

fn all(seed: u64, faults: usize) -> Vec<Step> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut kinds = kinds(faults);
    kinds.shuffle(&mut random);
    // The outage of a tool leaves calls that wait for their retry for a long time: it comes early.
    if let Some(place) = kinds.iter().position(|kind| *kind == Kind::ToolOutage) {
        kinds.swap(place, 0);
    }
    let mut steps = Vec::new();
    for (n, kind) in kinds.into_iter().enumerate() {
        let times = if kind == Kind::KillWorker { KILLS_IN_A_ROW } else { 1 };
        for _ in 0..times {
            steps.push(step(kind, n, &mut random));
        }
    }
    steps.truncate(faults);
    steps
}

/// So many kinds by their shares, each at least once if there is room for that.
fn kinds(faults: usize) -> Vec<Kind> {
    let once = SHARES.iter().map(|(kind, _)| *kind);
    let more = SHARES.iter().flat_map(|(kind, share)| vec![*kind; share - 1]);
    let again = SHARES.iter().filter(|(_, share)| *share > 1).flat_map(|(kind, share)| vec![*kind; *share]);
    let endless = once.chain(more).chain(again.collect::<Vec<_>>().into_iter().cycle());
    let mut room = faults;
    let size = |kind: &Kind| if *kind == Kind::KillWorker { KILLS_IN_A_ROW } else { 1 };
    endless
        .take_while(|kind| {
            let fits = room > 0;
            room = room.saturating_sub(size(kind));
            fits
        })
        .collect()
}

fn step(kind: Kind, n: usize, random: &mut StdRng) -> Step {
    let fault = fault(kind, n, random);
    // Sometimes two faults happen at once.
    let alone = matches!(
        kind,
        Kind::KillWorker | Kind::PoisonCall | Kind::ToolOutage | Kind::RollingRestart | Kind::FreezeWorker
    );
    let also = (!alone && random.random_range(0..6) == 0).then(|| match random.random_range(0..3) {
        0 if kind != Kind::KillDispatcher => Victim::Dispatcher(random.random_range(0..DISPATCHERS)),
        _ => Victim::Worker(random.random_range(0..WORKERS)),
    });
    Step { fault, also, measure: random.random_range(0..1000) }
}

fn fault(kind: Kind, n: usize, random: &mut StdRng) -> Fault {
    let worker = random.random_range(0..WORKERS);
    let dispatcher = random.random_range(0..DISPATCHERS);
    match kind {
        Kind::KillWorker => Fault::Kill(Victim::Worker(worker)),
        Kind::KillDispatcher => Fault::Kill(Victim::Dispatcher(dispatcher)),
        Kind::KillNats => Fault::Kill(Victim::Nats),
        Kind::KillPostgres => Fault::Kill(Victim::Postgres),
        Kind::FreezeWorker => Fault::Freeze(Victim::Worker(worker)),
        Kind::FreezeDispatcher => Fault::Freeze(Victim::Dispatcher(dispatcher)),
        Kind::FreezeNats => Fault::Freeze(Victim::Nats),
        Kind::FreezePostgres => Fault::Freeze(Victim::Postgres),
        Kind::WipeStore => Fault::WipeStore,
        Kind::WipeLiveStore => Fault::WipeLiveStore,
        Kind::RollBackStore => Fault::RollBackStore,
        Kind::FillDisk => Fault::FillDisk,
        Kind::Hole => {
            let damage = [Damage::BlackHole, Damage::DeafServer, Damage::DeafClient][random.random_range(0..3)];
            Fault::Line(any_line(n, random), damage)
        }
        Kind::HalfOpen => {
            let damage = [Damage::LostServer, Damage::LostClient][random.random_range(0..2)];
            Fault::Line(any_line(n, random), damage)
        }
        Kind::Cut => Fault::Line(any_line(n, random), Damage::Cut),
        Kind::Truncate => Fault::Line(any_line(n, random), Damage::Truncate),
        Kind::Delay => Fault::Line(any_line(n, random), Damage::Delay),
        Kind::RepeatReports => Fault::RepeatReports,
        Kind::RepeatJobs => Fault::RepeatJobs,
        Kind::PoisonCall => Fault::PoisonCall,
        Kind::ToolOutage => Fault::ToolOutage,
        Kind::RollingRestart => Fault::RollingRestart,
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

impl Fault {
    /// The name of the kind: a line of the report.
    pub(crate) fn kind(self) -> String {
        match self {
            Self::Kill(victim) => format!("kill -9 {}", victim.kind()),
            Self::Freeze(victim) => format!("SIGSTOP {}", victim.kind()),
            Self::WipeStore => "NATS store wiped, down".to_owned(),
            Self::WipeLiveStore => "NATS store wiped, live".to_owned(),
            Self::RollBackStore => "NATS store rolled back".to_owned(),
            Self::FillDisk => "NATS disk full".to_owned(),
            Self::Line(_, Damage::BlackHole | Damage::DeafServer | Damage::DeafClient) => "black hole".to_owned(),
            Self::Line(_, Damage::LostServer | Damage::LostClient) => "half-open connections".to_owned(),
            Self::Line(_, Damage::Cut) => "connections cut".to_owned(),
            Self::Line(_, Damage::Truncate) => "messages truncated".to_owned(),
            Self::Line(_, Damage::Delay) => "connections slow".to_owned(),
            Self::RepeatReports => "results repeated late".to_owned(),
            Self::RepeatJobs => "jobs repeated late".to_owned(),
            Self::PoisonCall => "poison call".to_owned(),
            Self::ToolOutage => "tool down at 100 %".to_owned(),
            Self::RollingRestart => "rolling restart".to_owned(),
        }
    }
}

impl Victim {
    fn kind(self) -> &'static str {
        match self {
            Self::Dispatcher(_) => "dispatcher",
            Self::Worker(_) => "worker",
            Self::Nats => "NATS",
            Self::Postgres => "Postgres",
        }
    }
}

impl fmt::Display for Victim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dispatcher(n) | Self::Worker(n) => write!(f, "{} {}", self.kind(), n + 1),
            Self::Nats | Self::Postgres => f.write_str(self.kind()),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorkerToNats(n) => write!(f, "worker {} to NATS", n + 1),
            Self::DispatcherToNats(n) => write!(f, "dispatcher {} to NATS", n + 1),
            Self::DispatcherToPostgres(n) => write!(f, "dispatcher {} to Postgres", n + 1),
            Self::ClientToNats => f.write_str("client to NATS"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |damage: Damage| match damage {
            Damage::DeafServer => " (nothing reaches the server)",
            Damage::DeafClient => " (nothing reaches the client)",
            Damage::LostServer => " (the server's end is lost)",
            Damage::LostClient => " (the client's end is lost)",
            _ => "",
        };
        match self {
            Self::Kill(victim) => write!(f, "kill -9 {victim}"),
            Self::Freeze(victim) => write!(f, "SIGSTOP {victim}"),
            Self::Line(line, damage) => write!(f, "{}: {line}{}", self.kind(), side(*damage)),
            _ => f.write_str(&self.kind()),
        }
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

    #[test]
    fn a_seed_is_a_schedule() {
        assert_eq!(all(7, 64), all(7, 64));
        assert_ne!(all(7, 64), all(8, 64));
    }

    #[test]
    fn every_kind_occurs_in_a_usual_run_of_any_seed() {
        for seed in 0..50 {
            let kinds: BTreeSet<String> = all(seed, 64).iter().map(|step| step.fault.kind()).collect();
            assert_eq!(kinds.len(), 22, "{kinds:?}");
        }
    }

    #[test]
    fn some_kinds_only() {
        let steps = plan(1, 5, "disk");
        assert!(steps.len() == 5 && steps.iter().all(|step| step.fault == Fault::FillDisk), "{steps:?}");
        assert_eq!(plan(1, 5, "no such fault"), []);
        assert_eq!(plan(1, 5, "rolling").len(), 5);
        let both: BTreeSet<String> = plan(1, 30, "disk, poison").iter().map(|step| step.fault.kind()).collect();
        assert_eq!(both.into_iter().collect::<Vec<_>>(), ["NATS disk full", "poison call"]);
    }

    #[test]
    fn there_are_as_many_as_asked_for() {
        for faults in [1, 2, 3, 10, 60, 64, 500] {
            assert_eq!(all(1, faults).len(), faults);
        }
        let mut rolling = all(3, 500);
        rolling.retain(|step| step.fault == Fault::RollingRestart);
        assert_eq!(rolling.len(), 1, "a minute each");
    }
}
