//! What can be broken, and how the report names it.

use std::fmt;

/// Servers of a run that are more than one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redundancy {
    /// NATS is a cluster of three.
    pub(crate) cluster: bool,
    /// Postgres has a synchronous standby.
    pub(crate) standby: bool,
}

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
    /// The disk of NATS is full for a while.
    FillDisk,
    /// Rows of calls locked for longer than a lease.
    LockCalls,
    /// A transaction that has written something and stays open for half a minute, with its snapshot.
    LongTransaction,
    /// A broken connection.
    Line(Line, Damage),
    /// SIGTERM and a new process for each process in turn, repeatedly.
    RollingRestart,
    /// Every worker is restarted without a tool while calls of it are submitted, and then with it.
    RemoveTool,
    /// One tool fails each time for a minute, and many calls of it wait.
    ToolOutage,
    /// Users and workers with credentials of their own try everything to reach what is not theirs.
    HostileClients,
}

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
    /// True if it can happen to such servers. What happens to a disk happens to a single server.
    pub(crate) const fn fits(self, redundancy: Redundancy) -> bool {
        match self {
            Self::KillLeaders => redundancy.cluster,
            Self::FailOver => redundancy.standby,
            Self::WipeLiveStore | Self::FillDisk => !redundancy.cluster,
            _ => true,
        }
    }

    /// Returns the name of the kind: a line of the report.
    pub(crate) fn kind(self) -> String {
        match self {
            Self::Kill(victim) => format!("kill -9 {}", victim.kind()),
            Self::Freeze(victim) => format!("SIGSTOP {}", victim.kind()),
            Self::KillLeaders => "kill -9 leaders of streams".to_owned(),
            Self::FailOver => "Postgres failover".to_owned(),
            Self::WipeStore => "NATS store wiped, down".to_owned(),
            Self::WipeLiveStore => "NATS store wiped, live".to_owned(),
            Self::FillDisk => "NATS disk full".to_owned(),
            Self::LockCalls => "rows of calls locked".to_owned(),
            Self::LongTransaction => "long transaction".to_owned(),
            Self::Line(_, Damage::BlackHole | Damage::DeafServer | Damage::DeafClient) => "black hole".to_owned(),
            Self::Line(_, Damage::LostServer | Damage::LostClient) => "half-open connections".to_owned(),
            Self::Line(_, Damage::Cut) => "connections cut".to_owned(),
            Self::Line(_, Damage::Truncate) => "messages truncated".to_owned(),
            Self::RollingRestart => "rolling restart".to_owned(),
            Self::RemoveTool => "tool removed and back".to_owned(),
            Self::ToolOutage => "tool down under backlog".to_owned(),
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

/// Shows what was drawn, too.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(victim) | Self::Freeze(victim) => write!(f, "{}, {victim:?}", self.kind()),
            Self::Line(line, damage) => write!(f, "{}, {line:?}, {damage:?}", self.kind()),
            _ => f.write_str(&self.kind()),
        }
    }
}
