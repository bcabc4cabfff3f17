//! Measured values, one for each round.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::meter::{Cost, Part};

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Calls per second of the baseline with 50 calls in a message.
    PackedCalls,
    /// Calls per second of the baseline with a call in a message.
    PlainCalls,
    /// Calls per second of the older program: one dispatcher, one worker.
    BeforeCalls,
    /// Calls per second: one dispatcher, one worker.
    Calls,
    /// Calls per second: two dispatchers, two workers.
    CallsTwoWorkers,
    /// Calls per second: two dispatchers, four workers.
    CallsFourWorkers,
    /// Calls per second from a backlog.
    CallsBacklog,
    /// Jobs of the backlog that were published again.
    Republished,
    /// Calls per second with a history.
    CallsHistory,
    /// Median latency of the baseline, ms.
    BaselineP50,
    /// Median latency of the older program, ms.
    BeforeP50,
    /// Median latency, ms.
    P50,
    /// 99th percentile of the baseline's latencies, ms.
    BaselineP99,
    /// 99th percentile of the latencies, ms.
    P99,
    /// Calls per second of case (l), over NATS.
    CallsNats,
    /// The same over HTTP.
    CallsHttp,
    /// The 50th percentile of its latencies, in ms, over NATS.
    P50Nats,
    /// The same over HTTP.
    P50Http,
    /// How long after its ideal end the latest slow call ended, ms.
    SlowLate,
    /// Peak memory of the worker with slow calls, MiB.
    WorkerMemory,
    /// Peak memory of its dispatcher, MiB.
    DispatcherMemory,
    /// Tasks per second.
    Tasks,
    /// Calls per second beside calls that wait for a tool that is down.
    CallsBesideOutage,
    /// 99th percentile of the latencies of a pool, ms.
    PoolP99,
    /// The same beside the backlog of another pool.
    PoolP99BesideBacklog,
    /// Calls per second while nothing else waits.
    CallsAlone,
    /// Calls per second beside calls that nobody can run.
    CallsBesideUnserved,
    /// 99th percentile of the latencies while nothing else waits, ms.
    P99Alone,
    /// 99th percentile of the latencies beside calls that nobody can run, ms.
    P99BesideUnserved,
    /// What NATS stores beside them, MB.
    NatsStore,
    /// From the restart of NATS with an empty store to the end of the next call, seconds.
    Healed,
    /// Calls per second of two workers with the same tools.
    CallsEvenPool,
    /// Calls per second of two workers of one pool, of which one has a tool more.
    CallsUnevenPool,
    /// Peak memory of the worker with waiting HTTP calls, MB.
    HttpWorkerMemory,
    /// Processor seconds for 1,000 calls of the baseline with 50 calls in a message.
    PackedCpu,
    /// The same with a call in a message.
    PlainCpu,
    /// Processor seconds for 1,000 calls of the older program.
    BeforeCpu,
    /// Processor seconds for 1,000 calls.
    Cpu,
    /// KB of write-ahead log for 1,000 calls of the baseline with 50 calls in a message.
    PackedWal,
    /// The same with a call in a message.
    PlainWal,
    /// KB of write-ahead log for 1,000 calls of the older program.
    BeforeWal,
    /// KB of write-ahead log for 1,000 calls.
    Wal,
    /// KB of tables and indexes for 1,000 calls of the baseline with 50 calls in a message.
    PackedTables,
    /// The same with a call in a message.
    PlainTables,
    /// KB of tables and indexes for 1,000 calls of the older program.
    BeforeTables,
    /// KB of tables and indexes for 1,000 calls.
    Tables,
}

/// Whose calls were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Side {
    Redial,
    /// The baseline with 50 calls in a message.
    Packed,
    /// The baseline with a call in a message.
    Plain,
    /// An older program.
    Before,
}

/// Values in the order of the rounds.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Samples {
    values: BTreeMap<Metric, Vec<f64>>,
    /// Processor seconds for 1,000 calls.
    processor: BTreeMap<Side, BTreeMap<Part, Vec<f64>>>,
}

impl Side {
    /// Calls per second, and the costs.
    const fn metrics(self) -> [Metric; 4] {
        use Metric as M;
        match self {
            Self::Redial => [M::Calls, M::Cpu, M::Wal, M::Tables],
            Self::Packed => [M::PackedCalls, M::PackedCpu, M::PackedWal, M::PackedTables],
            Self::Plain => [M::PlainCalls, M::PlainCpu, M::PlainWal, M::PlainTables],
            Self::Before => [M::BeforeCalls, M::BeforeCpu, M::BeforeWal, M::BeforeTables],
        }
    }
}

impl Samples {
    pub(crate) fn add(&mut self, metric: Metric, value: f64) {
        self.values.entry(metric).or_default().push(value);
    }

    /// Adds the throughput of a side, in calls per second, and what its calls cost.
    pub(crate) fn add_side(&mut self, side: Side, rate: f64, cost: &Cost) {
        let [calls, cpu, wal, tables] = side.metrics();
        self.add(calls, rate);
        self.add(wal, cost.wal);
        self.add(tables, cost.tables);
        if let Some(seconds) = cost.cpu() {
            self.add(cpu, seconds);
        }
        for (part, seconds) in &cost.parts {
            self.processor.entry(side).or_default().entry(*part).or_default().push(*seconds);
        }
    }

    /// The median processor seconds of the parts of a side for 1,000 calls; `None` if it was not measured.
    pub(crate) fn parts(&self, side: Side) -> Option<BTreeMap<Part, f64>> {
        let parts = self.processor.get(&side)?.iter();
        Some(parts.filter_map(|(part, seconds)| Some((*part, median(seconds.clone())?))).collect())
    }

    /// The median over the rounds; `None` if it was not measured.
    pub(crate) fn median(&self, metric: Metric) -> Option<f64> {
        median(self.values.get(&metric)?.clone())
    }

    /// The median of the rounds' ratios: both sides of one round met the same neighbours on the machine.
    pub(crate) fn ratio(&self, metric: Metric, to: Metric) -> Option<f64> {
        let (ours, theirs) = (self.values.get(&metric)?, self.values.get(&to)?);
        median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect())
    }
}

/// The middle value, or the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_rounds_and_ratios_of_pairs() {
        let mut samples = Samples::default();
        for (ours, theirs) in [(10.0, 10.0), (1.0, 2.0), (30.0, 100.0)] {
            samples.add(Metric::Calls, ours);
            samples.add(Metric::PackedCalls, theirs);
        }
        assert_eq!(samples.median(Metric::Calls), Some(10.0));
        assert_eq!(samples.ratio(Metric::Calls, Metric::PackedCalls), Some(0.5));
        assert_eq!(samples.median(Metric::Tasks), None);
        assert_eq!([vec![3.0, 1.0], vec![4.0], vec![]].map(median), [Some(2.0), Some(4.0), None]);
    }

    #[test]
    fn a_side_has_its_own_metrics_and_parts() {
        let mut samples = Samples::default();
        for seconds in [0.1, 0.3, 0.2] {
            let parts = [(Part::Postgres, seconds), (Part::Worker, 0.5)].into();
            samples.add_side(Side::Before, 900.0, &Cost { parts, wal: 2.0, tables: 3.0 });
        }
        let medians = Side::Before.metrics().map(|metric| samples.median(metric));
        assert_eq!(medians, [900.0, 0.7, 2.0, 3.0].map(Some));
        assert_eq!(samples.parts(Side::Before).unwrap().get(&Part::Postgres), Some(&0.2));
        assert!(samples.parts(Side::Redial).is_none() && samples.median(Metric::Calls).is_none());
    }
}
