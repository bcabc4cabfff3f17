//! Partitions of calls and attempts: made ahead, dropped when they are old. The functions of the database do both: a dispatcher's
//! role may not create or drop tables.

use std::time::Duration;

use redial_records::Time;
use uuid::Uuid;

use crate::{
    StoreError,
    columns::{int, uint, unsigned},
    connect::{Connection, Store},
    retention::first_id,
};

/// Keys that one statement looks at.
const KEYS: i64 = 1_000;
/// How long everybody waits at most for a partition to be dropped, if others still use the tables.
const LOCK_TIMEOUT: &str = "SET lock_timeout = '50ms'";
/// How long it may take to find and measure what is needed: nobody waits meanwhile.
const SEARCH_TIMEOUT: &str = "SET statement_timeout = '5min'";
/// How long everybody waits at most while a partition is dropped. That what is needed is found again is part of it.
const DROP_TIMEOUT: &str = "SET statement_timeout = '5s'";
/// A little longer than both.
const LIMIT: Duration = Duration::from_secs(320);

/// The calls whose ids were made in a time, and their attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its tables are `calls_<number>` and `attempts_<number>`; of what is kept of older ones, `calls_kept_<n>` for -n.
    pub number: i32,
    /// Where it begins; `None`: it is what is kept of older ones.
    pub from: Option<Time>,
    /// Where it ends, and the next one begins.
    pub until: Time,
}

/// What became of a partition that was to be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    Done {
        /// Calls that were still needed, and moved.
        moved: u64,
    },
    /// More of its calls are still needed than may be moved, or these and their attempts take more than 100 MiB.
    TooManyNeeded,
    /// It took longer than everybody may be kept waiting, and was undone. To try again at once would keep everybody waiting again.
    TooSlow,
    /// Others use the tables, such as a `pg_dump`.
    InUse,
}

impl Store {
    /// Lists the partitions, oldest first.
    pub async fn partitions(&self) -> Result<Vec<Partition>, StoreError> {
        let rows = on_connection!(self, |db| {
            let rows = sqlx::query!(
                r#"SELECT number, CASE WHEN number > 0 THEN from_at END AS from_at, to_at
                       FROM call_partitions ORDER BY to_at"#
            );
            rows.fetch_all(db).await
        })?;
        let partition = |(number, from, until)| Partition { number, from, until };
        Ok(rows.into_iter().map(|row| partition((row.number, row.from_at, row.to_at))).collect())
    }

    /// Makes partitions until the last one ends later than `ahead` from now, each for `width`, but for an hour at least. Returns how
    /// many; another dispatcher may have made them.
    pub async fn add_partitions(&self, ahead: Duration, width: Duration) -> Result<u32, StoreError> {
        let seconds = |duration: Duration| duration.as_secs_f64();
        on_connection!(self, |db| {
            let added = sqlx::query_scalar!(
                r#"SELECT add_call_partitions($1::float8 * interval '1 s', $2::float8 * interval '1 s') AS "added!""#,
                seconds(ahead),
                seconds(width),
            );
            let added = added.fetch_one(&mut *db).await?;
            Ok(uint(added))
        })
    }

    /// Drops the oldest partition but those that are kept, after [`Store::free_keys`]. It must have ended ten minutes before `cutoff` at
    /// least. Calls that have not ended, or not before `cutoff`, and those of tasks on record are kept, `most` at most. Everybody waits
    /// meanwhile, for 5 s at most.
    ///
    /// It may be repeated after an error.
    pub async fn drop_partition(&self, partition: Partition, cutoff: Time, most: u32) -> Result<Dropped, StoreError> {
        let (number, most) = (partition.number, int(most));
        let dropped = self.run_apart(async |db| {
            sqlx::raw_sql(SEARCH_TIMEOUT).execute(&mut **db).await?;
            let needed = sqlx::query_scalar!(
                r#"SELECT needed_calls($1, $2, $3) IS NULL AS "is_too_much!""#,
                number,
                cutoff,
                most
            );
            if needed.fetch_one(&mut **db).await? {
                return Ok(None);
            }
            sqlx::raw_sql(DROP_TIMEOUT).execute(&mut **db).await?;
            let drop = sqlx::query_scalar!("SELECT drop_call_partition($1, $2, $3)", number, cutoff, most);
            drop.fetch_one(&mut **db).await
        });
        match dropped.await {
            Ok(Some(moved)) => Ok(Dropped::Done { moved: unsigned(moved.into()) }),
            Ok(None) => Ok(Dropped::TooManyNeeded),
            Err(error) if error.is_lock_timeout() => Ok(Dropped::InUse),
            Err(error) if error.is_statement_timeout() => Ok(Dropped::TooSlow),
            Err(error) => Err(error),
        }
    }

    /// Deletes the keys of the calls of a partition that are not needed any more, and what is on record of redrives, before the calls
    /// are gone: a key is never that of a call that is not on record.
    pub async fn free_keys(&self, partition: Partition, cutoff: Time) -> Result<(), StoreError> {
        let (from, until) = (partition.from.map_or(Uuid::nil(), first_id), first_id(partition.until));
        for of_redrives in [false, true] {
            let mut after = Some(from);
            while let Some(last) = after {
                after = self.run_again(|| self.free_some(of_redrives, last, until, cutoff)).await?;
            }
        }
        Ok(())
    }

    async fn free_some(
        &self,
        of_redrives: bool,
        after: Uuid,
        until: Uuid,
        cutoff: Time,
    ) -> Result<Option<Uuid>, sqlx::Error> {
        let mut db = self.checkout().await?;
        let last = if of_redrives {
            let freed = sqlx::query_file_scalar!("sql/free_redriven.sql", after, until, cutoff, KEYS);
            freed.fetch_one(&mut *db).await?
        } else {
            let freed = sqlx::query_file_scalar!("sql/free_keys.sql", after, until, cutoff, KEYS);
            freed.fetch_one(&mut *db).await?
        };
        Ok(db.done(last))
    }

    /// Runs statements on a whole partition, on a connection of its own that is closed afterwards.
    async fn run_apart<T>(
        &self,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        let run = async {
            let mut db = self.checkout().await?;
            sqlx::raw_sql(LOCK_TIMEOUT).execute(&mut *db).await?;
            work(&mut db).await
        };
        match tokio::time::timeout(LIMIT, run).await {
            Ok(done) => Ok(done?),
            Err(_) => Err(StoreError::Timeout(LIMIT)),
        }
    }
}
