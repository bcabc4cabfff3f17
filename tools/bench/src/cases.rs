//! The table of cases: what each shows, of which side, against which other one, and its target. What is measured follows
//! from the rows.

use clap::ValueEnum;
use serde::Serialize;

/// One question that the benchmark answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Case {
    /// Throughput: one dispatcher, one worker
    A,
    /// The same with more processes
    B,
    /// Latency of calls one after another
    C,
    /// The throughput of (a) with a long history
    E,
    /// What the calls of (a) cost: processor time, write-ahead log, disk
    H,
    /// Throughput and latency over HTTP
    L,
    /// The memory of a worker whose HTTP calls all wait
    M,
}

/// What is measured at once, on the same servers as the other sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Side {
    /// One dispatcher, one worker.
    Redial,
    /// The baseline with 50 calls in a message.
    Packed,
    /// The baseline with a call in a message; also that of latencies.
    Plain,
    /// The older program: one dispatcher, one worker.
    Before,
    /// Two dispatchers, two workers.
    TwoWorkers,
    /// Two dispatchers, four workers.
    FourWorkers,
    History,
    Http,
    /// A worker whose HTTP calls all wait for their answers at the same time.
    WaitingHttp,
}

/// What a side can be measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    Calls,
    /// Percentiles of latencies, ms.
    P50,
    P99,
    /// Processor seconds for 1,000 calls.
    Cpu,
    /// KB of write-ahead log for 1,000 calls.
    Wal,
    /// KB of tables and indexes for 1,000 calls.
    Tables,
    /// Peak memory of a worker, MB.
    Memory,
}

impl Metric {
    /// What a load shows.
    pub(crate) const OF_LOAD: [Self; 4] = [Self::Calls, Self::Cpu, Self::Wal, Self::Tables];
    /// What calls one after another show.
    pub(crate) const OF_LATENCY: [Self; 2] = [Self::P50, Self::P99];
}

/// What a row shows of a side.
pub(crate) type Key = (Side, Metric);

/// What the ratio must be, or the value where there is nothing to compare with.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// A row of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) value: Key,
    pub(crate) against: Option<(&'static str, Key)>,
    pub(crate) target: Option<Target>,
}

/// What figures are compared with: the baselines, and an older program.
pub(crate) const PACKED: &str = "packed baseline";
pub(crate) const PLAIN: &str = "message per call";
pub(crate) const BEFORE: &str = "older program";

pub(crate) fn table(history: u32, waiting_http: u32) -> Vec<Row> {
    use Case::{A, B, C, E, H, L, M};
    use Metric::{Calls, Cpu, Memory, P50, P99, Tables, Wal};
    use Side::{Before, FourWorkers, History, Http, Packed, Plain, Redial, TwoWorkers};
    let rate = |case, what: &str, side| Row::of(case, &format!("calls/s, {what}"), "/s", (side, Calls));
    let same = |case, unit, metric| Row::of(case, "  the same", unit, (Redial, metric));
    let older = |metric| (BEFORE, (Before, metric));
    let a = ("(a)", (Redial, Calls));
    vec![
        rate(A, "1 dispatcher, 1 worker", Redial).against((PACKED, (Packed, Calls))).at_least(0.6),
        same(A, "/s", Calls).against((PLAIN, (Plain, Calls))),
        same(A, "/s", Calls).against(older(Calls)),
        rate(B, "2 dispatchers, 2 workers", TwoWorkers).against(a).at_least(0.95),
        rate(B, "2 dispatchers, 4 workers", FourWorkers).against(a).at_least(0.95),
        Row::of(C, "submission to result, p50", "ms", (Redial, P50)).against(("baseline", (Plain, P50))).at_most(1.3),
        same(C, "ms", P50).against(older(P50)),
        Row::of(C, "submission to result, p99", "ms", (Redial, P99)).against(("baseline", (Plain, P99))).at_most(4.0),
        rate(E, &format!("history of {history}"), History).against(a).at_least(0.95),
        rate(L, "NDJSON over HTTP", Http).against(("(a)", (Redial, Calls))).at_least(0.8),
        Row::of(L, "  call and wait over HTTP, p50", "ms", (Http, P50)).against(("(c)", (Redial, P50))).at_most(1.3),
        Row::of(
            M,
            &format!("peak memory of a worker with {waiting_http} waiting HTTP calls"),
            "MB",
            (Side::WaitingHttp, Memory),
        )
        .at_most(200.0),
        Row::of(H, "processor seconds per 1,000 calls", "s", (Redial, Cpu))
            .against((PACKED, (Packed, Cpu)))
            .at_most(1.89),
        same(H, "s", Cpu).against((PLAIN, (Plain, Cpu))),
        same(H, "s", Cpu).against(older(Cpu)),
        Row::of(H, "write-ahead log per 1,000 calls", "KB", (Redial, Wal)).against((PACKED, (Packed, Wal))),
        same(H, "KB", Wal).against(older(Wal)).at_most(1.0),
        Row::of(H, "tables and indexes per 1,000 calls", "KB", (Redial, Tables)).against((PACKED, (Packed, Tables))),
        same(H, "KB", Tables).against(older(Tables)),
    ]
}

impl Row {
    fn of(case: Case, what: &str, unit: &'static str, value: Key) -> Self {
        Self { case, what: what.to_owned(), unit, value, against: None, target: None }
    }

    fn against(self, other: (&'static str, Key)) -> Self {
        Self { against: Some(other), ..self }
    }

    fn at_least(self, least: f64) -> Self {
        Self { target: Some(Target::AtLeast(least)), ..self }
    }

    fn at_most(self, most: f64) -> Self {
        Self { target: Some(Target::AtMost(most)), ..self }
    }

    /// Returns what it is made of.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        [self.value].into_iter().chain(self.against.map(|(_, key)| key))
    }
}

impl Target {
    pub(crate) fn met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}
