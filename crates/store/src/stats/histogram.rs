//! Durations in logarithmic buckets: small, and histograms of different hours can be added up.

/// Buckets for each doubling.
const PER_DOUBLING: u32 = 4;
/// The first bucket is below 1 ms; the last one begins at 2^40 ms, which is 35 years.
const BUCKETS: usize = 2 + 40 * PER_DOUBLING as usize;

/// How far a quantile may be from the exact one, as a share of it: half a bucket, 2^(1/8) − 1, rounded up.
pub const RELATIVE_ERROR: f64 = 0.091;

/// Counts of durations by bucket. Bucket 0 is below 1 ms; bucket n + 1 begins at 2^(n/4) ms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Without the empty buckets at its end.
    counts: Vec<u64>,
}

impl Histogram {
    /// Counts a duration in ms; a negative one as 0.
    pub fn add(&mut self, ms: i64) {
        let bucket = bucket(u64::try_from(ms).unwrap_or(0));
        self.add_to(bucket, 1);
    }

    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in other.counts.iter().enumerate() {
            self.add_to(bucket, *count);
        }
    }

    /// Counts the durations that it holds.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the duration in ms that this share of all does not exceed, within [`RELATIVE_ERROR`] or half a ms;
    /// `None` if there is none. `share` is between 0 and 1.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank that is off by one in 2^52 stays in its bucket; a float is cut to the integer's range"
        )]
        let rank = ((count as f64 * share).ceil() as u64).clamp(1, count);
        let mut seen = 0_u64;
        let reached = |count: &u64| {
            seen = seen.saturating_add(*count);
            seen >= rank
        };
        self.counts.iter().position(reached).map(middle)
    }

    /// Writes it as a column holds it; what is beyond an `int` is cut.
    pub(super) fn to_column(&self) -> String {
        let counts: Vec<String> =
            self.counts.iter().map(|count| i32::try_from(*count).unwrap_or(i32::MAX).to_string()).collect();
        format!("{{{}}}", counts.join(","))
    }

    /// Reads a column; what another version or a person wrote there is read as far as it has a meaning.
    pub(super) fn from_column(counts: &[i32]) -> Self {
        let mut histogram = Self::default();
        for (bucket, count) in counts.iter().enumerate() {
            histogram.add_to(bucket, u64::try_from(*count).unwrap_or(0));
        }
        histogram
    }

    fn add_to(&mut self, bucket: usize, count: u64) {
        let bucket = bucket.min(BUCKETS - 1);
        if count == 0 {
            return;
        }
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        if let Some(slot) = self.counts.get_mut(bucket) {
            *slot = slot.saturating_add(count);
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the logarithm of a positive number of ms is between 0 and 64"
)]
fn bucket(ms: u64) -> usize {
    if ms == 0 { 0 } else { ((ms as f64).log2() * f64::from(PER_DOUBLING)).floor() as usize + 1 }
}

/// Returns the geometric middle of a bucket, in ms.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "there are 162 buckets, and the last one begins at 2^40"
)]
fn middle(bucket: usize) -> u64 {
    match bucket.checked_sub(1) {
        None => 0,
        Some(n) => ((n as f64 + 0.5) / f64::from(PER_DOUBLING)).exp2().round() as u64,
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    fn of(values: &[i64]) -> Histogram {
        let mut histogram = Histogram::default();
        for ms in values {
            histogram.add(*ms);
        }
        histogram
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn quantiles_are_within_the_error_that_the_documents_name() {
        let mut random = StdRng::seed_from_u64(7);
        for _ in 0..500 {
            let largest = 1_i64 << random.random_range(0..40);
            let mut values: Vec<i64> =
                (0..random.random_range(1..300)).map(|_| random.random_range(0..=largest)).collect();
            let histogram = of(&values);
            values.sort_unstable();
            for (share, percent) in [(0.0, 0), (0.5, 50), (0.95, 95), (1.0, 100)] {
                let rank = (values.len() * percent).div_ceil(100).max(1);
                let (exact, told) = (values[rank - 1] as f64, histogram.quantile(share).unwrap() as f64);
                assert!((told - exact).abs() <= exact * RELATIVE_ERROR + 0.5, "p{percent}: {told} for {exact}");
            }
        }
    }

    #[test]
    fn merged_histograms_are_those_of_all_values_and_columns_keep_them() {
        let (first, second) = ([0, 1, 5, 900, i64::MAX], [-3, 5, 7_200_000]);
        let mut merged = of(&first);
        merged.merge(&of(&second));
        assert_eq!(merged, of(&[&first[..], &second].concat()));
        assert_eq!(merged.count(), 8);
        let column = merged.to_column();
        let numbers: Vec<i32> = column.trim_matches(['{', '}']).split(',').map(|n| n.parse().unwrap()).collect();
        assert_eq!(Histogram::from_column(&numbers), merged);
        assert_eq!(Histogram::default().to_column(), "{}");
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn columns_of_others_are_read_as_far_as_they_have_a_meaning() {
        let mut strange = vec![1; BUCKETS + 10];
        strange[0] = -5;
        assert_eq!(Histogram::from_column(&strange).count(), u64::try_from(BUCKETS).unwrap() + 9);
    }
}
