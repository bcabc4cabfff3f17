//! Keeps partitions of calls and attempts ahead of time, and decides which of the old ones are dropped.

pub(crate) mod drop;

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use redial_store::{Partition, Store, StoreError, Time};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{context::Context, wait::until};

/// How often it is checked whether there are enough partitions.
const INTERVAL: Duration = Duration::from_mins(5);
/// Partitions in a retention: with more of them each statement costs more, with fewer what is old stays longer.
const IN_A_RETENTION: u32 = 12;
/// The width of a partition. Hours are the least that the database makes.
const LEAST_WIDTH: Duration = Duration::from_hours(1);
const MOST_WIDTH: Duration = Duration::from_hours(30 * 24);
/// Ids that dispatchers' clocks made may be off by so much, as everywhere else.
const CLOCKS: TimeDelta = TimeDelta::minutes(10);

/// Makes partitions ahead of time, again and again.
pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    while until(&shutdown, sleep(INTERVAL)).await.is_some() {
        if let Err(error) = add(&context.store, context.config.retention).await {
            tracing::error!(%error, "Failed to add partitions; submissions will fail once the last one is over");
        }
    }
}

/// Makes partitions for two of them ahead of now.
pub(crate) async fn add(store: &Store, retention: Option<Duration>) -> Result<(), StoreError> {
    let width = width(retention);
    let added = store.add_partitions(width * 2, width).await?;
    if added > 0 {
        tracing::info!(added, width_hours = width.as_secs() / 3600, "Added partitions of calls and attempts");
    }
    Ok(())
}

/// Returns the time that a partition spans.
fn width(retention: Option<Duration>) -> Duration {
    retention.map_or(MOST_WIDTH, |age| (age / IN_A_RETENTION).clamp(LEAST_WIDTH, MOST_WIDTH))
}

/// What is done about calls that ended before a cutoff.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Partitions that are dropped, oldest first.
    pub(crate) dropped: Vec<Partition>,
    /// Rows are deleted one by one up to here. From here on partitions are dropped, now or soon.
    pub(crate) rows_until: Time,
    /// Rows are deleted one by one up to here if a partition stays: then those behind it stay as well.
    pub(crate) rows_instead: Time,
    /// A partition that ended before should have been dropped so long ago that it is not waited for any more.
    late: Option<Time>,
}

impl Plan {
    /// Returns up to where rows are deleted one by one if a partition stays for a reason that may be over soon.
    pub(crate) fn rows_if_kept(&self, partition: &Partition) -> Time {
        let is_late = self.late.is_some_and(|late| partition.until < late);
        if is_late { self.rows_instead } else { self.rows_until }
    }
}

/// Plans a pass. `partitions`: all of them, oldest first; those without a lower bound are what is kept.
pub(crate) fn plan(partitions: &[Partition], cutoff: Time, retention: Duration) -> Plan {
    // A partition that will be over for longer than the retention soon enough is dropped then. Until then what is in it is kept longer
    // than it need be, but by less than an eighth of the retention. The same holds for one that should have been dropped.
    let soon = TimeDelta::from_std(retention / 8).unwrap_or(TimeDelta::MAX);
    let (rows_until, rows_instead) = (Time::MIN_UTC, Time::MIN_UTC);
    let late = cutoff.checked_sub_signed(soon).and_then(|late| late.checked_sub_signed(CLOCKS));
    let mut plan = Plan { dropped: Vec::new(), rows_until, rows_instead, late };
    for partition in partitions {
        if partition.from.is_none() {
            (plan.rows_until, plan.rows_instead) = (partition.until, partition.until);
        } else if partition.until + CLOCKS <= cutoff {
            plan.dropped.push(*partition);
            plan.rows_instead = partition.until;
        } else {
            if partition.until - cutoff > soon {
                plan.rows_instead = partition.until;
            }
            break;
        }
    }
    if plan.dropped.is_empty() {
        plan.rows_until = plan.rows_instead;
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn day(n: i64) -> Time {
        Time::UNIX_EPOCH + TimeDelta::days(1_000 + n)
    }

    /// Makes partitions: what is kept ends at the first day; each partition at the next one.
    fn partitions(days: &[i64]) -> Vec<Partition> {
        let from = [None].into_iter().chain(days.iter().map(|n| Some(day(*n))));
        let each = (0..).zip(from).zip(days);
        each.map(|((number, from), until)| Partition { number, from, until: day(*until) }).collect()
    }

    #[test]
    fn a_width_is_a_twelfth_of_the_retention_within_bounds() {
        assert_eq!(width(Some(DAY * 84)), DAY * 7);
        assert_eq!(width(Some(Duration::from_mins(1))), LEAST_WIDTH);
        assert_eq!((width(Some(DAY * 3650)), width(None)), (MOST_WIDTH, MOST_WIDTH));
    }

    #[test]
    fn partitions_that_ended_before_the_cutoff_are_dropped_oldest_first() {
        let all = partitions(&[0, 7, 14, 21, 28]);
        let cutoff = day(15);
        let planned = plan(&all, cutoff, DAY * 84);
        assert_eq!((planned.dropped, planned.rows_until), (all[1..3].to_vec(), day(0)));
        // Clocks differ.
        let Plan { dropped, .. } = plan(&all, day(14) + CLOCKS - TimeDelta::seconds(1), DAY * 84);
        assert_eq!(dropped, all[1..2]);
    }

    #[test]
    fn rows_of_a_partition_that_lasts_too_long_are_deleted_one_by_one() {
        let all = partitions(&[0, 30, 60]);
        // Of 84 days an eighth is ten and a half.
        let rows_until = |cutoff, retention| plan(&all, cutoff, retention).rows_until;
        assert_eq!(rows_until(day(20), DAY * 84), day(0), "it is dropped in ten days");
        assert_eq!(rows_until(day(19), DAY * 84), day(30));
        assert_eq!(rows_until(day(29), DAY), day(30), "the retention is short, and the partition long");
    }

    #[test]
    fn a_partition_that_stays_keeps_no_row_of_those_behind_it() {
        let all = partitions(&[0, 7, 14, 21, 51]);
        let planned = plan(&all, day(15), DAY * 84);
        assert_eq!(planned.rows_instead, day(14), "the next one is dropped soon");
        assert_eq!(plan(&all, day(22), DAY * 84).rows_instead, day(51), "the next one lasts too long");
        assert_eq!(plan(&all[..1], day(15), DAY * 84).rows_instead, day(0));
    }

    #[test]
    fn a_partition_that_others_use_is_waited_for_until_it_is_late() {
        let all = partitions(&[0, 7, 14]);
        // Of 84 days an eighth is ten and a half.
        let rows = |cutoff| plan(&all, cutoff, DAY * 84).rows_if_kept(&all[1]);
        assert_eq!(rows(day(17)), day(0));
        assert_eq!(rows(day(18)), day(14));
        let longest = plan(&all, day(18), Duration::MAX);
        assert_eq!((longest.rows_if_kept(&all[1]), longest.rows_until), (day(0), day(0)));
    }
}
