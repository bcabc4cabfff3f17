//! Measured values, one for each round.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    cases::{Key, Metric, Side},
    meter::{Cost, Part},
};

/// Values in the order of the rounds.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Samples {
    values: BTreeMap<Side, BTreeMap<Metric, Vec<f64>>>,
    /// Processor seconds for 1,000 calls.
    processor: BTreeMap<Side, BTreeMap<Part, Vec<f64>>>,
}

impl Samples {
    pub(crate) fn add(&mut self, (side, metric): Key, value: f64) {
        self.values.entry(side).or_default().entry(metric).or_default().push(value);
    }

    /// Adds the throughput of a side, in calls per second, and what its calls cost.
    pub(crate) fn add_load(&mut self, side: Side, rate: f64, cost: &Cost) {
        let values = [(Metric::Calls, rate), (Metric::Wal, cost.wal), (Metric::Tables, cost.tables)];
        let cpu = cost.cpu().map(|seconds| (Metric::Cpu, seconds));
        values.into_iter().chain(cpu).for_each(|(metric, value)| self.add((side, metric), value));
        for (part, seconds) in &cost.parts {
            self.processor.entry(side).or_default().entry(*part).or_default().push(*seconds);
        }
    }

    /// Returns the median processor seconds of the parts of a side for 1,000 calls; `None` if it was not measured.
    pub(crate) fn parts(&self, side: Side) -> Option<BTreeMap<Part, f64>> {
        let parts = self.processor.get(&side)?.iter();
        Some(parts.filter_map(|(part, seconds)| Some((*part, median(seconds.clone())?))).collect())
    }

    /// Returns the median over the rounds; `None` if it was not measured.
    pub(crate) fn median(&self, key: Key) -> Option<f64> {
        median(self.of(key)?.clone())
    }

    /// Returns the median of the rounds' ratios: both sides of one round met the same neighbours on the machine.
    pub(crate) fn ratio(&self, key: Key, to: Key) -> Option<f64> {
        let (ours, theirs) = (self.of(key)?, self.of(to)?);
        median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect())
    }

    fn of(&self, (side, metric): Key) -> Option<&Vec<f64>> {
        self.values.get(&side)?.get(&metric)
    }
}

/// Returns the middle value, or the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_rounds_and_ratios_of_pairs() {
        let (ours, theirs) = ((Side::Redial, Metric::Calls), (Side::Packed, Metric::Calls));
        let mut samples = Samples::default();
        for (our, their) in [(10.0, 10.0), (1.0, 2.0), (30.0, 100.0)] {
            samples.add(ours, our);
            samples.add(theirs, their);
        }
        assert_eq!((samples.median(ours), samples.ratio(ours, theirs)), (Some(10.0), Some(0.5)));
        assert_eq!(samples.median((Side::Plain, Metric::Calls)), None);
        assert_eq!([vec![3.0, 1.0], vec![4.0], vec![]].map(median), [Some(2.0), Some(4.0), None]);
    }
}
