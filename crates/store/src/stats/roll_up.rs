//! Adds ended calls to the statistics of their hours, slice by slice.

use chrono::TimeDelta;
use sqlx::PgConnection;

use super::{
    question::{KEPT, WORKERS_KEPT},
    rows,
    slice::{self, Range, Slice, day_of, hour_of},
};
use crate::{Store, StoreError, Time};

/// Rows for one hour: of calls, and the same number for attempts. What is beyond is counted as one.
const MOST: usize = 1_000;
/// Days that are added up from their hours in one step.
const DAYS: TimeDelta = TimeDelta::days(10);

/// What one step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolledUp {
    /// Another dispatcher holds the lock.
    Busy,
    /// Calls were added; there may be more.
    Added {
        /// How many.
        calls: usize,
    },
    /// Everything up to the bound is in the statistics.
    Done,
}

/// A moment, and the transactions that may still write before it.
///
/// An end that is written carries the time of its statement, and becomes visible with its commit. Once every transaction that
/// ran at this moment is over, no end of well before it can appear.
#[derive(Clone, Copy, Debug)]
pub struct Fence {
    /// When it was made, by the database's clock.
    pub at: Time,
    /// The number of the transaction that made it: all that wrote before have smaller ones.
    number: u64,
    /// All transactions with smaller numbers than this are over.
    oldest: u64,
}

impl Fence {
    /// True if every transaction that ran when `earlier` was made is over.
    pub const fn is_passed_by(&self, later: &Self) -> bool {
        later.oldest > self.number
    }

    /// True if these two cannot be compared: the database was restored, where numbers may begin lower, or its clock was set
    /// back, so that `earlier` is of a time that has not come yet.
    pub fn is_before(&self, earlier: &Self) -> bool {
        self.number < earlier.number || self.at < earlier.at
    }
}

impl Store {
    /// Makes a fence. It takes a number of its own, because a snapshot does not tell the numbers of transactions that began
    /// after the last one that is over.
    pub async fn fence(&self) -> Result<Fence, StoreError> {
        let row = once_on_connection!(self, |db| {
            sqlx::query!(
                r#"SELECT clock_timestamp() AS "at!", pg_current_xact_id()::text AS "number!",
                              pg_snapshot_xmin(pg_current_snapshot())::text AS "oldest!""#
            )
            .fetch_one(db)
            .await
        })?;
        let number = |text: &str| text.parse().map_err(|_| StoreError::BadData(format!("transaction number {text}")));
        Ok(Fence { at: row.at, number: number(&row.number)?, oldest: number(&row.oldest)? })
    }

    /// Adds the next calls, about `limit`, of those that ended before `bound`, to the statistics. No call that ended before
    /// `bound` may appear later. Everything happens in one transaction, which locks nothing that others wait for.
    pub async fn roll_up(&self, bound: Time, limit: u32) -> Result<RolledUp, StoreError> {
        self.run(async {
            let mut transaction = self.begin().await?;
            let Some(Progress { rolled, days }) = lock_progress(&mut transaction).await? else {
                transaction.commit().await?;
                return Ok(RolledUp::Busy);
            };
            if let Some(rolled) = rolled {
                sum_days(&mut transaction, days, day_of(rolled)).await?;
            }
            let oldest = bound - KEPT;
            let from = rolled.map_or(oldest, |rolled| rolled.max(oldest));
            let next = first_end(&mut transaction, from).await?.filter(|next| *next < bound);
            let Some(next) = next else {
                if rolled.is_none_or(|rolled| rolled < bound) {
                    set_progress(&mut transaction, bound).await?;
                }
                transaction.commit().await?;
                return Ok(RolledUp::Done);
            };
            let hour = hour_of(next);
            let until = bound.min(hour + TimeDelta::hours(1));
            let Slice { tally, calls, until } =
                slice::read(&mut transaction, Range { from: next, until, limit }).await?;
            let changed = rows::read_hour(&mut transaction, hour).await?.merge(tally, MOST);
            rows::write(&mut transaction, &changed).await?;
            set_progress(&mut transaction, until).await?;
            transaction.commit().await?;
            Ok(RolledUp::Added { calls })
        })
        .await
    }

    /// Leaves the next calls that ended at one time out of the statistics: reading them takes too long. Returns that time.
    pub async fn leave_out_of_stats(&self, bound: Time) -> Result<Option<Time>, StoreError> {
        self.run(async {
            let mut transaction = self.begin().await?;
            let Some(Progress { rolled, .. }) = lock_progress(&mut transaction).await? else {
                transaction.commit().await?;
                return Ok(None);
            };
            let from = rolled.unwrap_or(bound - KEPT);
            let next = first_end(&mut transaction, from).await?.filter(|next| *next < bound);
            if let Some(next) = next {
                set_progress(&mut transaction, next + TimeDelta::microseconds(1)).await?;
            }
            transaction.commit().await?;
            Ok(next)
        })
        .await
    }

    /// Undoes what was rolled up of times that have not come yet; returns from where it is counted again. A clock that went
    /// ahead for a while leaves such a progress, and calls that end after it was set right would never be counted. Whole hours
    /// are counted again, so no call counts twice: this one and the one before, in which calls may have ended since.
    pub async fn set_back_stats(&self) -> Result<Option<Time>, StoreError> {
        self.run(async {
            let mut transaction = self.begin().await?;
            let ahead = sqlx::query_scalar!(
                r#"SELECT clock_timestamp() AS "now!" FROM stats_progress
                   WHERE rolled_until > clock_timestamp() FOR UPDATE SKIP LOCKED"#
            );
            let to = ahead.fetch_optional(&mut *transaction).await?.map(|now| hour_of(now) - TimeDelta::hours(1));
            if let Some(to) = to {
                sqlx::query!("DELETE FROM call_stats WHERE hour >= $1", to).execute(&mut *transaction).await?;
                sqlx::query!("DELETE FROM attempt_stats WHERE hour >= $1", to).execute(&mut *transaction).await?;
                sqlx::query!("DELETE FROM model_stats WHERE hour >= $1", to).execute(&mut *transaction).await?;
                sqlx::query!("DELETE FROM pointer_stats WHERE hour >= $1", to).execute(&mut *transaction).await?;
                undo_days(&mut transaction, day_of(to)).await?;
                set_progress(&mut transaction, to).await?;
            }
            transaction.commit().await?;
            Ok(to)
        })
        .await
    }

    /// The end of what is in the statistics; `None` if nothing is yet.
    pub async fn rolled_until(&self) -> Result<Option<Time>, StoreError> {
        once_on_connection!(self, |db| {
            let done = sqlx::query_scalar!("SELECT rolled_until FROM stats_progress").fetch_optional(&mut *db).await?;
            Ok(done.flatten())
        })
    }

    /// Deletes up to `limit` rows of statistics that are older than they are kept: of calls 400 days, of workers 35.
    pub async fn delete_old_stats(&self, now: Time, limit: u32) -> Result<u64, StoreError> {
        once_on_connection!(self, |db| {
            let done =
                sqlx::query_file_scalar!("sql/delete_old_stats.sql", now - KEPT, now - WORKERS_KEPT, i64::from(limit))
                    .fetch_one(&mut *db)
                    .await?;
            Ok(u64::try_from(done).unwrap_or(0))
        })
    }
}

/// How far the statistics are; `None` where there is nothing yet.
struct Progress {
    /// Calls that ended before this are counted.
    rolled: Option<Time>,
    /// Days of models that end then or earlier are added up.
    days: Option<Time>,
}

/// Locks the progress; `None` if another dispatcher has.
async fn lock_progress(db: &mut PgConnection) -> Result<Option<Progress>, sqlx::Error> {
    sqlx::query_as!(
        Progress,
        "SELECT rolled_until AS rolled, days_until AS days FROM stats_progress FOR UPDATE SKIP LOCKED"
    )
    .fetch_optional(db)
    .await
}

async fn set_progress(db: &mut PgConnection, until: Time) -> Result<(), sqlx::Error> {
    sqlx::query!("UPDATE stats_progress SET rolled_until = $1", until).execute(db).await.map(|_| ())
}

/// Adds up the next days of models whose hours are all counted: those from `done` on that end at `bound` or earlier.
async fn sum_days(db: &mut PgConnection, done: Option<Time>, bound: Time) -> Result<(), sqlx::Error> {
    match done {
        Some(done) if done == bound => return Ok(()),
        // A version that has no days has set the statistics back.
        Some(done) if done > bound => return undo_days(db, bound).await,
        _ => {}
    }
    let first = sqlx::query_scalar!(
        "SELECT hour FROM model_stats WHERE $1::timestamptz IS NULL OR hour >= $1 ORDER BY hour LIMIT 1",
        done
    );
    let until = match first.fetch_optional(&mut *db).await?.map(day_of) {
        Some(first) if first < bound => {
            let until = bound.min(first + DAYS);
            sqlx::query_file!("sql/sum_model_days.sql", first, until).execute(&mut *db).await?;
            until
        }
        _ => bound,
    };
    sqlx::query!("UPDATE stats_progress SET days_until = $1", until).execute(db).await.map(|_| ())
}

/// Days of models from this one on are to be added up again.
async fn undo_days(db: &mut PgConnection, from: Time) -> Result<(), sqlx::Error> {
    sqlx::query!("DELETE FROM model_day_stats WHERE day >= $1", from).execute(&mut *db).await?;
    sqlx::query!("UPDATE stats_progress SET days_until = $1 WHERE days_until > $1", from).execute(db).await.map(|_| ())
}

/// The first end of a call at this time or later.
async fn first_end(db: &mut PgConnection, from: Time) -> Result<Option<Time>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT finished_at AS "at!" FROM calls WHERE finished_at >= $1 ORDER BY finished_at LIMIT 1"#,
        from,
    )
    .fetch_optional(db)
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_of_a_restored_database_or_a_clock_that_was_set_back_is_known() {
        let fence = |hour, number| Fence { at: Time::UNIX_EPOCH + TimeDelta::hours(hour), number, oldest: number };
        let earlier = fence(5, 9_000_000);
        assert!(!earlier.is_passed_by(&fence(6, 800)), "and would not be for millions of transactions");
        assert!(fence(6, 800).is_before(&earlier));
        assert!(fence(4, 9_000_001).is_before(&earlier));
        assert!(!fence(6, 9_000_001).is_before(&earlier));
    }
}
