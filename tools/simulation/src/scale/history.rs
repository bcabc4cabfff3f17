//! A long history: what it takes, how old it is, and how it is divided.

use super::{inputs as given, table::Table};

const DAY: f64 = 86_400.0;
const TB: f64 = 1e12;

pub(super) fn growth() -> Table {
    let title = "(h) a history of so many calls";
    let columns = vec![
        "calls",
        "calls/s",
        "days",
        "TB",
        "TB of log a day",
        "levels of an index",
        "hours of pg_dump",
        "log meanwhile, TB",
        "dead versions meanwhile",
        "statistics fall behind by calls/s",
    ];
    let mut table = Table::new(title, columns);
    for calls in [1e6, 1e9] {
        for rate in [100.0, 1_000.0, 10_000.0] {
            let dump = calls * given::STORED.value * given::TABLES_PART.value / given::DUMPED.value;
            table.add(vec![
                calls.into(),
                rate.into(),
                (calls / rate / DAY).into(),
                (calls * given::STORED.value / TB).into(),
                (rate * given::LOG.value * DAY / TB).into(),
                levels(calls).into(),
                (dump / 3_600.0).into(),
                (rate * given::LOG.value * dump / TB).into(),
                // A call is written three times; the first version is live until the second.
                (rate * 2.0 * dump).into(),
                (rate - given::ROLLED_UP.value).max(0.0).into(),
            ]);
        }
    }
    table
}

/// Levels of an index with an entry for each call.
fn levels(calls: f64) -> f64 {
    (calls.ln() / given::ENTRIES.value.ln()).ceil()
}

/// Partitions at once, and how wide each is, in days.
fn divided(retention: Option<f64>, age: f64) -> (f64, f64) {
    let width = retention.map_or(given::WIDEST.value, |days| {
        (days / given::PARTITIONS_IN_RETENTION.value).clamp(1.0 / 24.0, given::WIDEST.value)
    });
    // Two are made ahead, one keeps what is needed of older ones.
    ((retention.unwrap_or(age) / width).ceil() + 3.0, width)
}

/// ms of a claim of one call: measured with 1, 14 and 60 partitions, and a line between them and beyond.
fn claim(partitions: f64) -> f64 {
    let between =
        |(from, low): (f64, f64), (to, high): (f64, f64)| low + (high - low) * (partitions - from) / (to - from);
    let (one, some) = ((1.0, given::WITHOUT_PARTITIONS.value), (14.0, given::WRITTEN_ALONE.value));
    let many = (60.0, given::WITH_MANY.value);
    if partitions <= some.0 { between(one, some) } else { between(some, many) }
}

pub(super) fn partitions() -> Table {
    let title = "(i) partitions of calls and attempts";
    let columns = vec![
        "calls/s",
        "retention, days",
        "after days",
        "partitions",
        "days wide",
        "million calls in one",
        "TB of its calls",
        "part of the largest",
        "levels of an index",
        "ms a claim of one",
        "tables that a claim locks",
    ];
    let mut table = Table::new(title, columns);
    for rate in [100.0, 1_000.0, 10_000.0] {
        for (retention, age) in
            [(Some(7.0), 7.0), (Some(30.0), 30.0), (Some(365.0), 365.0), (None, 365.0), (None, 3_650.0)]
        {
            let (partitions, width) = divided(retention, age);
            let calls = rate * width * DAY;
            // The tables of calls without those of attempts.
            let heap = calls * given::STORED.value * given::TABLES_PART.value * given::CALLS_PART.value / TB;
            table.add(vec![
                rate.into(),
                retention.map_or_else(|| "none".into(), Into::into),
                age.into(),
                partitions.into(),
                width.into(),
                (calls / 1e6).into(),
                heap.into(),
                (heap / given::LARGEST.value).into(),
                levels(calls).into(),
                claim(partitions).into(),
                // It reads attempts to know since when a retry is ready.
                (2.0 * partitions).into(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retention_has_a_dozen_partitions_and_without_one_each_is_a_month() {
        assert_eq!(divided(Some(84.0), 84.0), (15.0, 7.0));
        assert_eq!(divided(None, 300.0), (13.0, 30.0));
        assert!((claim(14.0) - 0.18).abs() < 1e-9 && (claim(60.0) - 0.50).abs() < 1e-9 && claim(122.0) > 0.4);
    }
}
