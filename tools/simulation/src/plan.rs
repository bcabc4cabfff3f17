//! A plan: what a history starts with, and the moves that follow. A seed and a size determine it; shrinking removes
//! parts of it.

use crate::random::Random;

/// What a history starts with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// Bare calls that clients submit.
    pub calls: u8,
    /// Tasks that clients submit, all to one conversation.
    pub tasks: u8,
    pub workers: u8,
    pub dispatchers: u8,
    /// The network loses nothing and delivers at once, unless NATS is down. In such a history, outages must burn no
    /// attempts.
    pub calm: bool,
    /// Determines the properties of calls, agents and models.
    pub seed: u64,
}

/// What happens in one move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveKind {
    /// One of the possible events happens: a worker pulls, a tool ends, a dispatcher takes a step.
    Event,
    /// Time passes.
    Tick,
    /// A client submits a call or a task, or submits it again because it got no acknowledgement.
    Submit,
    /// A client cancels a call.
    CancelCall,
    /// A client cancels a task.
    CancelTask,
    /// A dispatcher sweeps what is due.
    Sweep,
    /// A dispatcher publishes the jobs of calls that wait.
    Feed,
    /// A dispatcher checks the streams.
    CheckStreams,
    /// A request that a worker once sent arrives, late or again.
    RepeatRequest,
    /// A job is lost from its stream.
    LoseJob,
    /// A job that was published before appears in the stream again.
    RepeatJob,
    /// A report that was published before appears in the stream again.
    RepeatReport,
    /// A worker process is killed; another one starts.
    KillWorker,
    /// A worker is cut off from the network, or reconnected.
    CutWorker,
    /// A dispatcher process is killed; another one starts.
    KillDispatcher,
    /// NATS goes down, or up again.
    ToggleNats,
    /// The store of NATS is wiped.
    Wipe,
    /// Postgres goes down, or up again.
    TogglePostgres,
    /// Somebody locks the row of a call, or lets go of it.
    LockCall,
    /// Another server becomes the primary, and does not have the last grant of a call.
    LoseGrant,
}

/// How often each kind of move is made, in a bad network and in a calm one.
const WEIGHTS: [(MoveKind, u32, u32); 20] = [
    (MoveKind::Event, 120, 120),
    (MoveKind::Tick, 20, 24),
    (MoveKind::Submit, 10, 10),
    (MoveKind::CancelCall, 3, 2),
    (MoveKind::CancelTask, 1, 1),
    (MoveKind::Sweep, 16, 16),
    (MoveKind::Feed, 16, 16),
    (MoveKind::CheckStreams, 4, 4),
    (MoveKind::RepeatRequest, 8, 0),
    (MoveKind::LoseJob, 2, 0),
    (MoveKind::RepeatJob, 5, 4),
    (MoveKind::RepeatReport, 6, 4),
    (MoveKind::KillWorker, 3, 2),
    (MoveKind::CutWorker, 6, 3),
    (MoveKind::KillDispatcher, 3, 3),
    (MoveKind::ToggleNats, 2, 4),
    (MoveKind::Wipe, 1, 1),
    (MoveKind::TogglePostgres, 2, 3),
    (MoveKind::LockCall, 4, 4),
    (MoveKind::LoseGrant, 4, 4),
];

impl MoveKind {
    /// Returns the kind that a random number stands for.
    fn of(number: u32, calm: bool) -> Self {
        let weight = |(_, bad, good): &(Self, u32, u32)| if calm { *good } else { *bad };
        let mut left = number % WEIGHTS.iter().map(weight).sum::<u32>();
        let found = WEIGHTS.iter().find(|one| {
            let found = left < weight(one);
            left = left.wrapping_sub(weight(one));
            found
        });
        found.map_or(Self::Event, |(kind, ..)| *kind)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub kind: MoveKind,
    /// Chooses whom it happens to and how; 0 is the simplest choice.
    pub pick: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub setup: Setup,
    /// The moves, in order.
    pub moves: Vec<Move>,
}

impl Plan {
    /// Makes the plan of a seed with `size` moves.
    pub fn new(seed: u64, size: u32) -> Self {
        let mut random = Random::new(seed);
        let mut up_to = |most: u32| random.below(most) as u8;
        let (calls, workers, dispatchers) = (1 + up_to(3), 1 + up_to(3), 1 + up_to(3));
        // A task takes as long to play as many calls.
        let tasks = if random.percent(9) { 1 + random.below(2) as u8 } else { 0 };
        let calm = random.percent(35);
        let setup = Setup { calls, tasks, workers, dispatchers, calm, seed: random.next() };
        let mut one = || {
            let number = random.next();
            Move { kind: MoveKind::of(number as u32, calm), pick: crate::random::bits(number) }
        };
        Self { setup, moves: (0..size).map(|_| one()).collect() }
    }
}

/// Returns the size of the plan that a run gives to a seed.
pub fn size_of(seed: u64) -> u32 {
    30 + 30 * (seed % 5) as u32
}
