//! Prunes old calls and old conversations, and what nobody reads any more. Every statement has a bounded number of rows.

use chrono::TimeDelta;
use sqlx::Connection;
use uuid::Uuid;

use redial_records::Time;

use crate::{StoreError, connect::Store};

/// What one batch of a pass over a table did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// Calls or tasks that were deleted.
    pub deleted: u64,
    /// The last id that the batch looked at: the next one continues behind it. `None` at the end.
    pub last: Option<Uuid>,
}

impl Store {
    /// Looks at the next `limit` tasks behind the id `after`, and deletes the conversations whose last task is among them if
    /// all their tasks ended before `cutoff`; counts tasks, without their calls. Ids begin with the time of submission, so
    /// the primary key leads straight to the oldest: no table is scanned. Calls whose ids were made from `dropped_from` on stay until
    /// their partitions are dropped.
    ///
    /// A conversation that a new task was submitted to meanwhile stays as it is, and with it the others of this batch,
    /// until the next pass: a model must not be shown half a conversation.
    pub async fn prune_tasks(
        &self,
        cutoff: Time,
        dropped_from: Time,
        after: Uuid,
        limit: u32,
    ) -> Result<Pruned, StoreError> {
        let bound = first_id_after(cutoff);
        once_on_connection!(self, |db| {
            let mut transaction = db.begin().await?;
            let gone = sqlx::query_file!(
                "sql/prune_tasks.sql",
                after,
                bound,
                cutoff,
                i64::from(limit),
                first_id(dropped_from)
            )
            .fetch_one(&mut *transaction)
            .await?;
            let continues =
                sqlx::query_file_scalar!("sql/any_conversation_continues.sql", &gone.tenants, &gone.conversations,)
                    .fetch_one(&mut *transaction)
                    .await?;
            if continues {
                transaction.rollback().await?;
                return Ok(Pruned { deleted: 0, last: gone.last });
            }
            transaction.commit().await?;
            Ok(Pruned { deleted: u64::try_from(gone.tasks).unwrap_or(0), last: gone.last })
        })
    }

    /// Returns the task behind this id, by id; `None` if there is none.
    pub async fn next_task(&self, after: Uuid) -> Result<Option<Uuid>, StoreError> {
        on_connection!(self, |db| {
            sqlx::query_scalar!("SELECT id FROM tasks WHERE id > $1 ORDER BY id LIMIT 1", after)
                .fetch_optional(db)
                .await
        })
    }

    /// Looks at the next `limit` calls behind the id `after`, and deletes those that ended before `cutoff`, but for those of tasks on
    /// record, with their attempts and late reports. Calls whose ids were made from `dropped_from` on stay until their partitions
    /// are dropped.
    pub async fn prune_calls(
        &self,
        cutoff: Time,
        dropped_from: Time,
        after: Uuid,
        limit: u32,
    ) -> Result<Pruned, StoreError> {
        let bound = first_id_after(cutoff).min(first_id(dropped_from));
        once_on_connection!(self, |db| {
            let gone = sqlx::query_file!("sql/prune_calls.sql", after, bound, cutoff, i64::from(limit))
                .fetch_one(&mut *db)
                .await?;
            Ok(Pruned { deleted: u64::try_from(gone.deleted).unwrap_or(0), last: gone.last })
        })
    }

    /// Deletes up to `limit` workers that were not seen since `cutoff`. One that comes back registers again.
    pub async fn delete_gone_workers(&self, cutoff: Time, limit: u32) -> Result<u64, StoreError> {
        self.delete_gone_workers_of(None, cutoff, limit).await
    }

    /// Deletes gone workers of one identity, or of all.
    pub(crate) async fn delete_gone_workers_of(
        &self,
        identity: Option<&str>,
        cutoff: Time,
        limit: u32,
    ) -> Result<u64, StoreError> {
        once_on_connection!(self, |db| {
            let deleted = sqlx::query_file_scalar!("sql/delete_gone_workers.sql", cutoff, i64::from(limit), identity)
                .fetch_one(&mut *db)
                .await?;
            Ok(u64::try_from(deleted).unwrap_or(0))
        })
    }

    /// Deletes up to `limit` tombstones of erasures that found nothing and ended more than a day before `now`, but not more than a
    /// month.
    pub async fn delete_empty_tombstones(&self, now: Time, limit: u32) -> Result<u64, StoreError> {
        let (oldest, newest) = (now - TimeDelta::days(30), now - TimeDelta::days(1));
        once_on_connection!(self, |db| {
            let done = sqlx::query_file!("sql/delete_empty_tombstones.sql", oldest, newest, i64::from(limit))
                .execute(&mut *db)
                .await?;
            Ok(done.rows_affected())
        })
    }

    /// Deletes up to `limit` late reports that arrived before `cutoff`.
    pub async fn delete_late_reports(&self, cutoff: Time, limit: u32) -> Result<u64, StoreError> {
        once_on_connection!(self, |db| {
            let done =
                sqlx::query_file!("sql/delete_late_reports.sql", cutoff, i64::from(limit)).execute(&mut *db).await?;
            Ok(done.rows_affected())
        })
    }

    /// Deletes up to `limit` dead letters that arrived before `cutoff`.
    pub async fn delete_dead_letters(&self, cutoff: Time, limit: u32) -> Result<u64, StoreError> {
        once_on_connection!(self, |db| {
            let done =
                sqlx::query_file!("sql/delete_dead_letters.sql", cutoff, i64::from(limit)).execute(&mut *db).await?;
            Ok(done.rows_affected())
        })
    }
}

/// Returns the smallest version 7 UUID of a later time. Ids are made by dispatchers' clocks, so ten minutes are added
/// for clocks that differ from the database's; `finished_at` decides in the end.
pub(crate) fn first_id_after(time: Time) -> Uuid {
    first_id(time + TimeDelta::minutes(10))
}

/// Returns the smallest version 7 UUID of a time; of times that none can hold, the nearest.
pub(crate) fn first_id(time: Time) -> Uuid {
    let ms = u64::try_from(time.timestamp_millis()).unwrap_or(0).min((1 << 48) - 1);
    Uuid::from_u128(u128::from(ms) << 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_now_lie_below_the_bound_of_now() {
        let id = redial_proto::CallId::generate().0;
        let now = Time::from(std::time::SystemTime::now());
        assert!(id < first_id_after(now));
        assert!(id > first_id_after(now - TimeDelta::minutes(20)));
    }
}
