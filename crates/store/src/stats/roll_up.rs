//! Adds ended calls to the statistics of their hours, slice by slice.

use chrono::TimeDelta;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    question::{KEPT, WORKERS_KEPT},
    rows, slice,
    tally::{Kind, Tally, by_hour, merge},
};
use crate::{Store, StoreError, Time, pass::Pass};

/// Rows of each kind for one hour. What is beyond is counted as one.
const MOST: usize = 1_000;

/// What one step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolledUp {
    /// Another dispatcher holds the lock.
    Busy,
    /// Calls were added; there may be more.
    Added {
        /// How many were taken from the queue.
        calls: usize,
    },
    /// The queue was empty.
    Done,
}

impl Store {
    /// Adds the next calls of a pass over the queue, `limit` at most, to the statistics. Everything happens in one transaction, which locks
    /// nothing that others wait for.
    pub async fn roll_up(&self, pass: &mut Pass, limit: u32) -> Result<RolledUp, StoreError> {
        let (done, place) = self
            .run(async {
                let mut transaction = self.begin().await?;
                if !try_lock(&mut transaction).await? {
                    transaction.commit().await?;
                    return Ok((RolledUp::Busy, None));
                }
                let (ids, place) = take(&mut transaction, pass, limit).await?;
                for (hour, tally) in by_hour(slice::read(&mut transaction, &ids).await?) {
                    let (mut sums, hours) = (Tally::new(), hour..hour + TimeDelta::hours(1));
                    for kind in Kind::ALL {
                        sums.extend(rows::read(&mut transaction, kind, &hours, None, None).await?);
                    }
                    rows::write(&mut transaction, &merge(&mut sums, tally, MOST)).await?;
                }
                transaction.commit().await?;
                Ok((if ids.is_empty() { RolledUp::Done } else { RolledUp::Added { calls: ids.len() } }, place))
            })
            .await?;
        pass.went_to(place);
        Ok(done)
    }

    /// Leaves the next call of a pass out of the statistics: reading it takes too long. Returns which.
    pub async fn leave_out_of_stats(&self, pass: &Pass) -> Result<Option<Uuid>, StoreError> {
        self.run(async {
            let mut transaction = self.begin().await?;
            let left_out =
                if try_lock(&mut transaction).await? { take(&mut transaction, pass, 1).await?.0.pop() } else { None };
            transaction.commit().await?;
            Ok(left_out)
        })
        .await
    }

    /// Returns when the first of the calls ended that are not in the statistics yet; `None` if all are.
    pub async fn uncounted_since(&self) -> Result<Option<Time>, StoreError> {
        once_on_connection!(self, |db| {
            sqlx::query_scalar!("SELECT min(ended_at) FROM uncounted_calls").fetch_one(&mut *db).await
        })
    }

    /// Deletes up to `limit` rows of each kind that are older than they are kept: of calls 400 days, of workers 35.
    pub async fn delete_old_stats(&self, now: Time, limit: u32) -> Result<u64, StoreError> {
        once_on_connection!(self, |db| {
            let kinds = Kind::ALL.map(|kind| kind.as_str().to_owned());
            let before = Kind::ALL.map(|kind| now - if kind == Kind::Attempt { WORKERS_KEPT } else { KEPT });
            let delete = sqlx::query_file!("sql/delete_old_stats.sql", &kinds, &before, i64::from(limit));
            Ok(delete.execute(&mut *db).await?.rows_affected())
        })
    }
}

/// Takes the next calls from the queue; returns them, and where the last of them was.
async fn take(db: &mut PgConnection, pass: &Pass, limit: u32) -> Result<(Vec<Uuid>, Option<String>), sqlx::Error> {
    let take = sqlx::query_file!("sql/take_uncounted.sql", pass.place(), i64::from(limit));
    let mut rows = take.fetch_all(db).await?;
    let ids = rows.iter().map(|row| row.call_id).collect();
    Ok((ids, rows.pop().map(|last| last.place)))
}

/// Locks the statistics until the end of the transaction; false if another one has. Sums of an hour are read, and written as a whole.
async fn try_lock(db: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(r#"SELECT pg_try_advisory_xact_lock(hashtextextended('statistics', 0)) AS "locked!""#)
        .fetch_one(db)
        .await
}

/// Locks the statistics, and waits for that.
pub(crate) async fn lock(db: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query!("SELECT pg_advisory_xact_lock(hashtextextended('statistics', 0))").execute(db).await.map(|_| ())
}
