//! Adds ended calls to the statistics of their hours, slice by slice.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use sqlx::PgConnection;

use super::{
    histogram::Histogram,
    slice::{self, Range, Slice, hour_of},
    tally::{AttemptKey, AttemptSums, CallKey, CallSums, ModelKey, ModelSums, PlaceKey, Tally, UsageSums, What},
};
use crate::{
    Store, StoreError, Time,
    columns::{bigint, column, unsigned},
};

/// Rows for one hour: of calls, and the same number for attempts. What is beyond is counted as one.
const MOST: usize = 1_000;
/// Statistics of calls are kept for so long.
const KEPT: TimeDelta = TimeDelta::days(400);
/// Those of workers, whose names change with every start, are kept for so long.
const WORKERS_KEPT: TimeDelta = TimeDelta::days(35);

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
        let row = self
            .run(async {
                let mut db = self.checkout().await?;
                let row = sqlx::query!(
                    r#"SELECT clock_timestamp() AS "at!", pg_current_xact_id()::text AS "number!",
                              pg_snapshot_xmin(pg_current_snapshot())::text AS "oldest!""#
                )
                .fetch_one(&mut *db)
                .await?;
                Ok(db.done(row))
            })
            .await?;
        let number = |text: &str| text.parse().map_err(|_| StoreError::BadData(format!("transaction number {text}")));
        Ok(Fence { at: row.at, number: number(&row.number)?, oldest: number(&row.oldest)? })
    }

    /// Adds the next calls, about `limit`, of those that ended before `bound`, to the statistics. No call that ended before
    /// `bound` may appear later. Everything happens in one transaction, which locks nothing that others wait for.
    pub async fn roll_up(&self, bound: Time, limit: u32) -> Result<RolledUp, StoreError> {
        self.run(async {
            let mut transaction = self.begin().await?;
            let Some(rolled) = lock_progress(&mut transaction).await? else {
                transaction.commit().await?;
                return Ok(RolledUp::Busy);
            };
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
            let changed = read_hour(&mut transaction, hour).await?.merge(tally, MOST);
            write(&mut transaction, &changed).await?;
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
            let Some(rolled) = lock_progress(&mut transaction).await? else {
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
                set_progress(&mut transaction, to).await?;
            }
            transaction.commit().await?;
            Ok(to)
        })
        .await
    }

    /// The end of what is in the statistics; `None` if nothing is yet.
    pub async fn rolled_until(&self) -> Result<Option<Time>, StoreError> {
        self.run(async {
            let mut db = self.checkout().await?;
            let done = sqlx::query_scalar!("SELECT rolled_until FROM stats_progress").fetch_optional(&mut *db).await?;
            Ok(db.done(done.flatten()))
        })
        .await
    }

    /// Deletes up to `limit` rows of statistics that are older than they are kept: of calls 400 days, of workers 35.
    pub async fn delete_old_stats(&self, now: Time, limit: u32) -> Result<u64, StoreError> {
        self.run(async {
            let mut db = self.checkout().await?;
            let done =
                sqlx::query_file_scalar!("sql/delete_old_stats.sql", now - KEPT, now - WORKERS_KEPT, i64::from(limit))
                    .fetch_one(&mut *db)
                    .await?;
            Ok(db.done(u64::try_from(done).unwrap_or(0)))
        })
        .await
    }
}

/// Locks the progress; `None` if another dispatcher has, else how far it is.
async fn lock_progress(db: &mut PgConnection) -> Result<Option<Option<Time>>, sqlx::Error> {
    sqlx::query_scalar!("SELECT rolled_until FROM stats_progress FOR UPDATE SKIP LOCKED").fetch_optional(db).await
}

async fn set_progress(db: &mut PgConnection, until: Time) -> Result<(), sqlx::Error> {
    sqlx::query!("UPDATE stats_progress SET rolled_until = $1", until).execute(db).await.map(|_| ())
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

/// The sums of an hour.
async fn read_hour(db: &mut PgConnection, hour: Time) -> Result<Tally, sqlx::Error> {
    let until = hour + TimeDelta::hours(1);
    Ok(Tally {
        calls: read_calls(&mut *db, hour, until).await?,
        attempts: read_attempts(&mut *db, hour, until).await?,
        models: read_models(&mut *db, hour, until).await?,
        places: read_places(db, hour, until).await?,
    })
}

/// The sums of calls of these hours.
pub(super) async fn read_calls(
    db: &mut PgConnection,
    from: Time,
    until: Time,
) -> Result<BTreeMap<CallKey, CallSums>, sqlx::Error> {
    let rows =
        sqlx::query!("SELECT * FROM call_stats WHERE hour >= $1 AND hour < $2", from, until).fetch_all(db).await?;
    let mut calls = BTreeMap::new();
    for row in rows {
        let key = CallKey { hour: row.hour, tenant: row.tenant, tool: row.tool, state: row.state, class: row.class };
        let usage = UsageSums {
            answers: unsigned(row.answers),
            input_tokens: unsigned(row.input_tokens),
            output_tokens: unsigned(row.output_tokens),
            cost_micros: unsigned(row.cost_micros),
            tokens_unknown: unsigned(row.tokens_unknown),
            cost_unknown: unsigned(row.cost_unknown),
        };
        let sums = CallSums {
            calls: unsigned(row.calls),
            retries: unsigned(row.retries),
            corrections: unsigned(row.corrections),
            durations: Histogram::from_column(&row.durations),
            usage,
        };
        calls.insert(key, sums);
    }
    Ok(calls)
}

/// The sums of attempts of these hours.
pub(super) async fn read_attempts(
    db: &mut PgConnection,
    from: Time,
    until: Time,
) -> Result<BTreeMap<AttemptKey, AttemptSums>, sqlx::Error> {
    let rows =
        sqlx::query!("SELECT * FROM attempt_stats WHERE hour >= $1 AND hour < $2", from, until).fetch_all(db).await?;
    let mut attempts = BTreeMap::new();
    for row in rows {
        let key = AttemptKey { hour: row.hour, tenant: row.tenant, worker: row.worker, tool: row.tool };
        let sums = AttemptSums {
            attempts: unsigned(row.attempts),
            failed: unsigned(row.failed),
            durations: Histogram::from_column(&row.durations),
        };
        attempts.insert(key, sums);
    }
    Ok(attempts)
}

/// The sums of models of these hours.
pub(super) async fn read_models(
    db: &mut PgConnection,
    from: Time,
    until: Time,
) -> Result<BTreeMap<ModelKey, ModelSums>, sqlx::Error> {
    let rows =
        sqlx::query!("SELECT * FROM model_stats WHERE hour >= $1 AND hour < $2", from, until).fetch_all(db).await?;
    let mut models = BTreeMap::new();
    for row in rows {
        let key = ModelKey { hour: row.hour, tenant: row.tenant, agent: row.agent, model: row.model, tool: row.tool };
        let sums = ModelSums {
            calls: unsigned(row.calls),
            right_at_once: unsigned(row.right_at_once),
            repaired: unsigned(row.repaired),
            wrong: unsigned(row.wrong),
            corrected: [unsigned(row.corrected_1), unsigned(row.corrected_2), unsigned(row.corrected_3)],
            usage: UsageSums {
                answers: unsigned(row.answers),
                input_tokens: unsigned(row.input_tokens),
                output_tokens: unsigned(row.output_tokens),
                cost_micros: unsigned(row.cost_micros),
                tokens_unknown: unsigned(row.tokens_unknown),
                cost_unknown: unsigned(row.cost_unknown),
            },
        };
        models.insert(key, sums);
    }
    Ok(models)
}

/// The places of these hours.
pub(super) async fn read_places(
    db: &mut PgConnection,
    from: Time,
    until: Time,
) -> Result<BTreeMap<PlaceKey, u64>, sqlx::Error> {
    let rows =
        sqlx::query!("SELECT * FROM pointer_stats WHERE hour >= $1 AND hour < $2", from, until).fetch_all(db).await?;
    let mut places = BTreeMap::new();
    for row in rows {
        let what = if row.what == What::Repair.as_str() { What::Repair } else { What::Error };
        let (hour, tenant, tool, pointer, rule) = (row.hour, row.tenant, row.tool, row.pointer, row.rule);
        places.insert(PlaceKey { hour, tenant, tool, what, pointer, rule }, unsigned(row.calls));
    }
    Ok(places)
}

async fn write(db: &mut PgConnection, tally: &Tally) -> Result<(), sqlx::Error> {
    let rows: Vec<(&CallKey, &CallSums)> = tally.calls.iter().collect();
    sqlx::query_file!(
        "sql/write_call_stats.sql",
        &column(&rows, |(key, _)| key.hour),
        &column(&rows, |(key, _)| key.tenant.clone()),
        &column(&rows, |(key, _)| key.tool.clone()),
        &column(&rows, |(key, _)| key.state.clone()),
        &column(&rows, |(key, _)| key.class.clone()),
        &column(&rows, |(_, sums)| bigint(sums.calls)),
        &column(&rows, |(_, sums)| bigint(sums.retries)),
        &column(&rows, |(_, sums)| bigint(sums.corrections)),
        &column(&rows, |(_, sums)| sums.durations.to_column()),
        &column(&rows, |(_, sums)| bigint(sums.usage.answers)),
        &column(&rows, |(_, sums)| bigint(sums.usage.input_tokens)),
        &column(&rows, |(_, sums)| bigint(sums.usage.output_tokens)),
        &column(&rows, |(_, sums)| bigint(sums.usage.cost_micros)),
        &column(&rows, |(_, sums)| bigint(sums.usage.tokens_unknown)),
        &column(&rows, |(_, sums)| bigint(sums.usage.cost_unknown)),
    )
    .execute(&mut *db)
    .await?;
    let rows: Vec<(&AttemptKey, &AttemptSums)> = tally.attempts.iter().collect();
    sqlx::query_file!(
        "sql/write_attempt_stats.sql",
        &column(&rows, |(key, _)| key.hour),
        &column(&rows, |(key, _)| key.tenant.clone()),
        &column(&rows, |(key, _)| key.worker.clone()),
        &column(&rows, |(key, _)| key.tool.clone()),
        &column(&rows, |(_, sums)| bigint(sums.attempts)),
        &column(&rows, |(_, sums)| bigint(sums.failed)),
        &column(&rows, |(_, sums)| sums.durations.to_column()),
    )
    .execute(&mut *db)
    .await?;
    write_models(db, &tally.models).await?;
    write_places(db, &tally.places).await
}

async fn write_models(db: &mut PgConnection, models: &BTreeMap<ModelKey, ModelSums>) -> Result<(), sqlx::Error> {
    let rows: Vec<(&ModelKey, &ModelSums)> = models.iter().collect();
    sqlx::query_file!(
        "sql/write_model_stats.sql",
        &column(&rows, |(key, _)| key.hour),
        &column(&rows, |(key, _)| key.tenant.clone()),
        &column(&rows, |(key, _)| key.agent.clone()),
        &column(&rows, |(key, _)| key.model.clone()),
        &column(&rows, |(key, _)| key.tool.clone()),
        &column(&rows, |(_, sums)| bigint(sums.calls)),
        &column(&rows, |(_, sums)| bigint(sums.right_at_once)),
        &column(&rows, |(_, sums)| bigint(sums.repaired)),
        &column(&rows, |(_, sums)| bigint(sums.wrong)),
        &column(&rows, |(_, sums)| bigint(sums.corrected[0])),
        &column(&rows, |(_, sums)| bigint(sums.corrected[1])),
        &column(&rows, |(_, sums)| bigint(sums.corrected[2])),
        &column(&rows, |(_, sums)| bigint(sums.usage.answers)),
        &column(&rows, |(_, sums)| bigint(sums.usage.input_tokens)),
        &column(&rows, |(_, sums)| bigint(sums.usage.output_tokens)),
        &column(&rows, |(_, sums)| bigint(sums.usage.cost_micros)),
        &column(&rows, |(_, sums)| bigint(sums.usage.tokens_unknown)),
        &column(&rows, |(_, sums)| bigint(sums.usage.cost_unknown)),
    )
    .execute(db)
    .await
    .map(|_| ())
}

async fn write_places(db: &mut PgConnection, places: &BTreeMap<PlaceKey, u64>) -> Result<(), sqlx::Error> {
    let rows: Vec<(&PlaceKey, &u64)> = places.iter().collect();
    sqlx::query_file!(
        "sql/write_pointer_stats.sql",
        &column(&rows, |(key, _)| key.hour),
        &column(&rows, |(key, _)| key.tenant.clone()),
        &column(&rows, |(key, _)| key.tool.clone()),
        &column(&rows, |(key, _)| key.what.as_str().to_owned()),
        &column(&rows, |(key, _)| key.pointer.clone()),
        &column(&rows, |(key, _)| key.rule.clone()),
        &column(&rows, |(_, calls)| bigint(**calls)),
    )
    .execute(db)
    .await
    .map(|_| ())
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
