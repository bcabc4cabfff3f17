//! Measured values, one for each round.

use std::collections::BTreeMap;

use serde::Serialize;

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Calls per second of the baseline.
    BaselineCalls,
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
    /// Processor seconds for 1,000 calls of the baseline.
    BaselineCpu,
    /// Processor seconds for 1,000 calls.
    Cpu,
    /// KB of write-ahead log for 1,000 calls of the baseline.
    BaselineWal,
    /// KB of write-ahead log for 1,000 calls.
    Wal,
    /// KB of tables and indexes for 1,000 calls of the baseline.
    BaselineTables,
    /// KB of tables and indexes for 1,000 calls.
    Tables,
}

/// Values by metric, in the order of the rounds.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Samples(BTreeMap<Metric, Vec<f64>>);

impl Samples {
    pub(crate) fn add(&mut self, metric: Metric, value: f64) {
        self.0.entry(metric).or_default().push(value);
    }

    /// The median over the rounds; `None` if it was not measured.
    pub(crate) fn median(&self, metric: Metric) -> Option<f64> {
        median(self.0.get(&metric)?.clone())
    }

    /// The median of the rounds' ratios: both sides of one round met the same neighbours on the machine.
    pub(crate) fn ratio(&self, metric: Metric, to: Metric) -> Option<f64> {
        let (ours, theirs) = (self.0.get(&metric)?, self.0.get(&to)?);
        median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect())
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_rounds_and_ratios_of_pairs() {
        let mut samples = Samples::default();
        for (ours, theirs) in [(10.0, 10.0), (1.0, 2.0), (30.0, 100.0)] {
            samples.add(Metric::Calls, ours);
            samples.add(Metric::BaselineCalls, theirs);
        }
        assert_eq!(samples.median(Metric::Calls), Some(10.0));
        assert_eq!(samples.ratio(Metric::Calls, Metric::BaselineCalls), Some(0.5));
        assert_eq!(samples.median(Metric::Tasks), None);
    }
}
