//! Drops old partitions, and says up to where rows are deleted one by one if one cannot be dropped.

use std::time::{Duration, Instant};

use redial_store::{Dropped, Partition, Store, StoreError, Time};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Plan;
use crate::wait::until;

/// Calls that are moved when their partition is dropped: everything waits meanwhile, for about a second and a half.
const MOVED: u32 = 100_000;
/// How often it is tried to drop a partition while others use it, and the pause between two tries.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(500);
/// A partition that took too long is left alone for so long: each try keeps everybody waiting.
const LEFT_ALONE: Duration = Duration::from_hours(1);

/// A partition that took too long to drop.
pub(crate) struct Slow {
    number: i32,
    tried: Instant,
}

/// A pass over the partitions that are dropped.
pub(crate) struct Dropping<'a> {
    store: &'a Store,
    shutdown: &'a CancellationToken,
    /// What ended before is not needed.
    cutoff: Time,
    slow: &'a mut Option<Slow>,
}

impl<'a> Dropping<'a> {
    pub(crate) const fn new(
        store: &'a Store,
        shutdown: &'a CancellationToken,
        cutoff: Time,
        slow: &'a mut Option<Slow>,
    ) -> Self {
        Self { store, shutdown, cutoff, slow }
    }

    /// Drops partitions, oldest first, up to one that cannot be dropped: only the oldest one may be. Returns up to where rows are deleted
    /// one by one. What may be over soon (others use the tables, an error) is tried again in the next pass, and rows are deleted only
    /// once the partition is late; what is to stay is not waited for.
    pub(crate) async fn run(&mut self, plan: &Plan) -> Time {
        let shutdown = self.shutdown;
        for partition in &plan.dropped {
            let number = partition.number;
            if self.is_left_alone(number) {
                return plan.rows_instead;
            }
            // Half-way is as good as not at all: whatever had begun is committed or undone.
            let Some(dropped) = until(shutdown, self.drop_one(*partition)).await else {
                return plan.rows_until;
            };
            match dropped {
                Some(Dropped::Done { moved }) => {
                    tracing::info!(partition = number, until = %partition.until, moved, "Dropped a partition");
                }
                Some(Dropped::TooManyNeeded) => {
                    tracing::info!(
                        partition = number,
                        "Kept a partition of which too much is needed; deleting single rows"
                    );
                    return plan.rows_instead;
                }
                Some(Dropped::TooSlow) => {
                    tracing::warn!(
                        partition = number,
                        "Gave up dropping a partition, which took too long; deleting single rows"
                    );
                    *self.slow = Some(Slow { number, tried: Instant::now() });
                    return plan.rows_instead;
                }
                Some(Dropped::InUse) => {
                    tracing::info!(partition = number, "Others use the tables; the partition is dropped later");
                    return plan.rows_if_kept(partition);
                }
                None => return plan.rows_if_kept(partition),
            }
        }
        plan.rows_until
    }

    fn is_left_alone(&self, number: i32) -> bool {
        self.slow.as_ref().is_some_and(|slow| slow.number == number && slow.tried.elapsed() < LEFT_ALONE)
    }

    /// Tries to drop a partition while others use it, a few times. `None` if it failed, which was logged.
    async fn drop_one(&self, partition: Partition) -> Option<Dropped> {
        let failed = |error: &StoreError| {
            tracing::warn!(partition = partition.number, %error, "Failed to drop a partition");
        };
        self.store.free_keys(partition, self.cutoff).await.inspect_err(failed).ok()?;
        for _ in 0..TRIES {
            let dropped = self.store.drop_partition(partition, self.cutoff, MOVED).await.inspect_err(failed).ok()?;
            if dropped != Dropped::InUse {
                return Some(dropped);
            }
            sleep(PAUSE).await;
        }
        Some(Dropped::InUse)
    }
}
