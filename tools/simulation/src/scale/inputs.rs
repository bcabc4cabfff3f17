//! The numbers that go in, each with its source.

use super::table::Table;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    /// The code says so: this text, with the number, is in this file of the repository.
    Declared(&'static str),
    /// It was measured: this text, with the number, is in this file of the repository.
    Measured(&'static str),
    /// A default or a limit of Postgres.
    Postgres,
    /// Nothing but an assumption.
    Assumed,
}

/// A number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) value: f64,
    pub(super) basis: Basis,
    /// The file, or the reason of an assumption.
    pub(super) source: &'static str,
}

const fn declared(name: &'static str, value: f64, source: &'static str, text: &'static str) -> Input {
    Input { name, value, basis: Basis::Declared(text), source }
}

const fn measured(name: &'static str, value: f64, source: &'static str, text: &'static str) -> Input {
    Input { name, value, basis: Basis::Measured(text), source }
}

const fn assumed(name: &'static str, value: f64, why: &'static str) -> Input {
    Input { name, value, basis: Basis::Assumed, source: why }
}

const fn postgres(name: &'static str, value: f64, source: &'static str) -> Input {
    Input { name, value, basis: Basis::Postgres, source }
}

const FEED: &str = "services/dispatcher/src/feed.rs";
const REGISTER: &str = "services/dispatcher/src/workers/register.rs";
const SWEEP: &str = "services/dispatcher/src/calls/sweep.rs";
const PARTITIONS: &str = "services/dispatcher/src/partitions.rs";
const SETTINGS: &str = "crates/queue/src/streams/settings.rs";
const PERFORMANCE: &str = "docs/PERFORMANCE.md";
const SCALING: &str = "docs/SCALING.md";
const DECISION: &str = "docs/decisions/partitions-by-id.md";

pub(super) const CONNECTIONS: Input =
    declared("connections of a dispatcher", 16.0, "services/dispatcher/src/config.rs", "connections: 16,");
pub(super) const LEASE: Input =
    declared("lease, s", 15.0, "services/dispatcher/src/config.rs", "lease: Duration::from_secs(15),");
pub(super) const SLOTS: Input =
    declared("slots of a worker", 64.0, "docs/OPERATIONS.md", "for each model; 64 unless set");
pub(super) const FEEDING: Input =
    declared("a feeder's look, every s", 0.5, FEED, "const INTERVAL: Duration = Duration::from_millis(500);");
pub(super) const LOOKING: Input =
    declared("a look at the workers, every s", 1.0, FEED, "const WORKERS: Duration = Duration::from_secs(1);");
pub(super) const SLOW: Input =
    declared("a look at when tools were served, every s", 5.0, FEED, "const SLOW: Duration = Duration::from_secs(5);");
pub(super) const REGISTRY: Input =
    declared("the registry is read, every s", 15.0, REGISTER, "const LONGEST_AGE: Duration = Duration::from_secs(15);");
pub(super) const ROLL_UP: Input = declared(
    "a pass of the statistics, every s",
    15.0,
    "services/dispatcher/src/roll_up.rs",
    "const INTERVAL: Duration = Duration::from_secs(15);",
);
pub(super) const PRUNING: Input = declared(
    "a pass of retention, every s",
    60.0,
    "services/dispatcher/src/retention.rs",
    "const INTERVAL: Duration = Duration::from_mins(1);",
);
pub(super) const LAG: Input = declared(
    "waiting calls are counted for metrics, every s",
    5.0,
    "services/dispatcher/src/lag.rs",
    "const INTERVAL: Duration = Duration::from_secs(5);",
);
pub(super) const COUNTED: Input = declared(
    "open calls that are counted then",
    50_000.0,
    "crates/store/src/audit/queues.rs",
    "const COUNTED: i64 = 50_000;",
);
pub(super) const CLAIMS_AT_ONCE: Input = declared(
    "statements of claims at once",
    3.0,
    "services/dispatcher/src/workers/claim.rs",
    r#"name: "grant claims", workers: 3, batch: 16"#,
);
pub(super) const CLAIMS: Input = Input { name: "claims in a statement", value: 16.0, ..CLAIMS_AT_ONCE };
pub(super) const SUBMISSIONS: Input = declared(
    "submissions in a statement, 3 at once",
    64.0,
    "services/dispatcher/src/calls/submit.rs",
    r#"name: "submit calls", workers: 3, batch: 64"#,
);
pub(super) const REPORTS: Input = declared(
    "messages of reports in a statement, 3 at once",
    64.0,
    "services/dispatcher/src/calls/ingest.rs",
    "const BATCH: usize = 64;",
);
pub(super) const PUBLISHED: Input = declared(
    "jobs that are published together",
    512.0,
    "services/dispatcher/src/publish.rs",
    r#"name: "publish jobs", workers: 4, batch: 512"#,
);
pub(super) const DUE: Input = declared("due calls in a transaction", 300.0, SWEEP, "const BATCH: u32 = 300;");
pub(super) const SHORTEST_PAUSE: Input = declared(
    "pause before a call that another sweep had locked, s",
    0.005,
    SWEEP,
    "const SHORTEST_PAUSE: Duration = Duration::from_millis(5);",
);
pub(super) const PULL: Input = declared(
    "an open pull request, s",
    2.0,
    "crates/queue/src/pull.rs",
    "const EXPIRES: Duration = Duration::from_secs(2);",
);
pub(super) const PULLS: Input =
    declared("open pull requests of a consumer", 4_096.0, SETTINGS, "const MAX_WAITING: i64 = 4096;");
pub(super) const STREAM: Input =
    declared("messages of a stream", 1_000_000.0, SETTINGS, "const MAX_MESSAGES: i64 = 1_000_000;");
pub(super) const LOGINS: Input = declared(
    "connections to NATS of a worker identity",
    1_000.0,
    "crates/access/src/server.rs",
    "const MOST_CONNECTIONS: u32 = 1_000;",
);
pub(super) const PATIENCE: Input = declared(
    "a worker waits for its registration, s",
    5.0,
    "services/worker/src/register.rs",
    "const TIMEOUT: Duration = Duration::from_secs(5);",
);
pub(super) const PAUSE: Input = declared(
    "pause before it registers again, s",
    2.0,
    "services/worker/src/register.rs",
    "const PAUSE_CAP: Duration = Duration::from_secs(2);",
);
pub(super) const RECONNECT: Input = declared(
    "workers connect again within, s",
    3.0,
    "crates/queue/src/connect.rs",
    "Backoff::new(Duration::from_millis(100), Duration::from_secs(2))",
);
pub(super) const PARTITIONS_IN_RETENTION: Input =
    declared("partitions in a retention", 12.0, PARTITIONS, "const IN_A_RETENTION: u32 = 12;");
pub(super) const WIDEST: Input = declared(
    "the widest partition, days",
    30.0,
    PARTITIONS,
    "const MOST_WIDTH: Duration = Duration::from_hours(30 * 24);",
);
pub(super) const LOCK_TIMEOUT: Input =
    declared("a statement waits for a lock, s", 4.0, "crates/store/src/connect.rs", r#"("lock_timeout", "4s")"#);
pub(super) const REQUESTS: Input = declared(
    "requests of a sender that wait in a dispatcher",
    4_096.0,
    "services/dispatcher/src/fair_queue.rs",
    "const MAX_REQUESTS: usize = 4_096;",
);

pub(super) const LOOKED_UP: Input =
    measured("a look at the workers, s for each of them", 0.025 / 10_000.0, SCALING, "25 ms with 10,000 workers");
const WITHOUT_DEAD: Input =
    measured("a look at 1,000 workers without dead versions of their rows, s", 0.002_2, SCALING, "2.2 ms with");
pub(super) const VERSION: Input = measured(
    "a dead version of a row of workers, s to step over",
    (0.049 - WITHOUT_DEAD.value) / 720_000.0,
    SCALING,
    "49 ms with 1,000 workers and 720,000 dead versions",
);
pub(super) const BEAT: Input =
    measured("a heartbeat and its commit, processor s of Postgres", 0.000_095, SCALING, "0.095 ms of processor time");
pub(super) const PER_CALL: Input =
    measured("Postgres, processor s per call", 0.000_077, PERFORMANCE, "Redial                             0.077 ");
pub(super) const WITHOUT_PARTITIONS: Input =
    measured("a claim of one call, ms with one partition", 0.07, DECISION, "(one call: 0.07, 0.18 and");
pub(super) const WRITTEN_ALONE: Input =
    measured("a claim of one call, ms with 14 partitions", 0.18, DECISION, "(one call: 0.07, 0.18 and");
pub(super) const WITH_MANY: Input =
    measured("a claim of one call, ms with 60 partitions", 0.50, DECISION, "0.50 ms), on a quiet");
pub(super) const WRITTEN_TOGETHER: Input =
    measured("a claim of 200 calls, ms with 14 partitions", 0.95, DECISION, "0.95 ms with 14 partitions");
pub(super) const LOG: Input = measured(
    "write-ahead log, bytes per call",
    2_680.0,
    PERFORMANCE,
    "write-ahead log per 1,000 calls                         2680 KB",
);
pub(super) const STORED: Input = measured(
    "tables and indexes, bytes per call",
    1_600.0,
    PERFORMANCE,
    "tables and indexes per 1,000 calls                      1600 KB",
);
pub(super) const ROLLED_UP: Input = measured(
    "calls per second that one dispatcher adds to the statistics",
    // It pauses for as long as each step took.
    4_999_000.0 / 292.0 / 2.0,
    PERFORMANCE,
    "rolled up 4999000 calls in 292 s",
);
pub(super) const MOVED: Input = measured(
    "dropping a partition holds up everything, s",
    1.5,
    "services/dispatcher/src/partitions/drop.rs",
    "everything waits meanwhile, for about a second and a half",
);

pub(super) const SERVER: Input = postgres("max_connections", 100.0, "its default");
pub(super) const FREEZE: Input = postgres("autovacuum_freeze_max_age, transactions", 200e6, "its default");
pub(super) const WRAPAROUND: Input = postgres("transactions until it refuses to write", 2_147_483_648.0, "2^31");
pub(super) const LARGEST: Input = postgres("the largest table, TB", 35.2, "2^32 pages of 8 KiB");

pub(super) const COMMIT: Input =
    assumed("a statement with its commit, s", 0.002, "a local disk with fsync, and a network");
pub(super) const STATEMENT: Input = assumed("a statement that only reads, s", 0.000_5, "a network");
pub(super) const READ: Input =
    assumed("a statement that only reads, processor s", 0.000_1, "less than a claim of one call");
pub(super) const CORES: Input = assumed("cores of the machine of Postgres", 16.0, "a large one");
pub(super) const DUMPED: Input = assumed("pg_dump, bytes per second", 1e8, "one process that compresses");
pub(super) const TABLES_PART: Input =
    assumed("the part of tables in tables and indexes", 0.6, "six indexes or more for a call");
pub(super) const CALLS_PART: Input =
    assumed("the part of calls in the tables of calls and attempts", 0.75, "rows of attempts are shorter");
pub(super) const ENTRIES: Input =
    assumed("entries of a page of an index", 290.0, "8 KiB, 16 bytes and 12 of heads for each entry");
pub(super) const SUBSCRIPTIONS_OF_DISPATCHER: Input =
    assumed("subscriptions of a dispatcher", 35.0, "one for each verb, and those of pulls and notices");
pub(super) const SUBSCRIPTIONS_OF_WORKER: Input =
    assumed("subscriptions of a worker", 3.0, "control messages, answers, and pulls of one pool");
pub(super) const CYCLE: Input = assumed("from a pull to the next one under load, s", 0.005, "a claim and its answer");
pub(super) const BACKEND: Input =
    assumed("memory of a connection to Postgres, MB", 12.0, "plans for some hundred tables and indexes");
pub(super) const JUDGED: Input =
    assumed("a registration holds the lock of its identity, s", 0.003, "six statements on one connection");

const ALL: [Input; 59] = [
    CONNECTIONS,
    LEASE,
    SLOTS,
    FEEDING,
    LOOKING,
    SLOW,
    REGISTRY,
    ROLL_UP,
    PRUNING,
    LAG,
    COUNTED,
    CLAIMS_AT_ONCE,
    CLAIMS,
    SUBMISSIONS,
    REPORTS,
    PUBLISHED,
    DUE,
    SHORTEST_PAUSE,
    PULL,
    PULLS,
    STREAM,
    LOGINS,
    PATIENCE,
    PAUSE,
    RECONNECT,
    PARTITIONS_IN_RETENTION,
    WIDEST,
    LOCK_TIMEOUT,
    REQUESTS,
    LOOKED_UP,
    WITHOUT_DEAD,
    VERSION,
    BEAT,
    PER_CALL,
    WITHOUT_PARTITIONS,
    WRITTEN_ALONE,
    WITH_MANY,
    WRITTEN_TOGETHER,
    LOG,
    STORED,
    ROLLED_UP,
    MOVED,
    SERVER,
    FREEZE,
    WRAPAROUND,
    LARGEST,
    COMMIT,
    STATEMENT,
    READ,
    CORES,
    DUMPED,
    TABLES_PART,
    CALLS_PART,
    ENTRIES,
    SUBSCRIPTIONS_OF_DISPATCHER,
    SUBSCRIPTIONS_OF_WORKER,
    CYCLE,
    BACKEND,
    JUDGED,
];

/// All of them.
pub(super) fn table() -> Table {
    let mut table = Table::new(
        "(j) what went in, besides what is imported from the engine and the protocol",
        vec!["basis", "value", "what", "source"],
    );
    for Input { name, value, basis, source } in ALL {
        let basis = match basis {
            Basis::Declared(_) => "declared",
            Basis::Measured(_) => "measured",
            Basis::Postgres => "Postgres",
            Basis::Assumed => "assumed",
        };
        let value = if value < 0.01 { format!("{value:.1e}") } else { super::table::number_text(value) };
        table.add(vec![basis.into(), value.as_str().into(), name.into(), source.into()]);
    }
    table
}

#[cfg(test)]
mod tests;
