//! What can be broken, and how the report names it.

use std::fmt;

use super::redundancy::Redundancy;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// `kill -9`, then a new one.
    Kill(Victim),
    /// SIGSTOP for longer than a lease, then SIGCONT.
    Freeze(Victim),
    /// The leader of a stream killed and started again, every 5 s for a minute; in a cluster only.
    KillLeaders,
    /// Postgres' primary killed, its standby promoted, the old primary back; with a standby only.
    FailOver,
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
    /// Every worker is restarted without a tool while calls of it are submitted, and then with it.
    RemoveTool,
    /// A pool loses its only worker while calls wait for it, and gets one again.
    ScaleToZero,
    /// One tool fails each time for a minute, and many calls of it wait.
    BackloggedOutage,
    /// Only some workers of a pool have a tool.
    HalfAPool,
    /// A batch of malformed submissions on the intake stream, as large as a message can be.
    RejectedBatch,
    /// A conversation of some MB.
    GiantConversation,
    /// Garbage on every subject that a client or a worker may publish to.
    HostileMessages,
    /// Users and workers with credentials of their own try everything to reach what is not theirs.
    HostileClients,
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

impl Fault {
    /// It breaks nothing: it is what happens when somebody deploys, scales or makes a mistake.
    pub(crate) const fn is_misuse(self) -> bool {
        matches!(
            self,
            Self::RemoveTool
                | Self::ScaleToZero
                | Self::BackloggedOutage
                | Self::HalfAPool
                | Self::RejectedBatch
                | Self::GiantConversation
                | Self::HostileMessages
                | Self::HostileClients
        )
    }

    /// Whether it can happen to such servers. What happens to a disk happens to a single server.
    pub(crate) const fn fits(self, redundancy: Redundancy) -> bool {
        match self {
            Self::KillLeaders => redundancy.cluster,
            Self::FailOver => redundancy.standby,
            Self::WipeLiveStore | Self::RollBackStore | Self::FillDisk => !redundancy.cluster,
            _ => true,
        }
    }

    /// The name of the kind: a line of the report.
    pub(crate) fn kind(self) -> String {
        match self {
            Self::Kill(victim) => format!("kill -9 {}", victim.kind()),
            Self::Freeze(victim) => format!("SIGSTOP {}", victim.kind()),
            Self::KillLeaders => "kill -9 leaders of streams".to_owned(),
            Self::FailOver => "Postgres failover".to_owned(),
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
            Self::RemoveTool => "tool removed and back".to_owned(),
            Self::ScaleToZero => "pool scaled to zero".to_owned(),
            Self::BackloggedOutage => "tool down under backlog".to_owned(),
            Self::HalfAPool => "half a pool without a tool".to_owned(),
            Self::RejectedBatch => "batch rejected".to_owned(),
            Self::GiantConversation => "giant conversation".to_owned(),
            Self::HostileMessages => "hostile messages".to_owned(),
            Self::HostileClients => "hostile clients".to_owned(),
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
