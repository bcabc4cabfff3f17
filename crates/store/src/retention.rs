//! Prunes old calls and old conversations.

use chrono::TimeDelta;
use sqlx::Connection;
use uuid::Uuid;

use redial_records::Time;

use crate::{StoreError, connect::Store};

impl Store {
    /// Deletes up to `limit` bare calls, with their attempts, that ended before `cutoff`, and a tenth as many
    /// conversations whose tasks all did; returns the number of those calls and tasks, without the calls of the tasks.
    /// Ids begin with the time of submission, so the primary key leads straight to the oldest: no table is scanned.
    pub async fn prune(&self, cutoff: Time, limit: u32) -> Result<u64, StoreError> {
        Ok(self.prune_tasks(cutoff, limit.div_ceil(10)).await? + self.prune_calls(cutoff, limit).await?)
    }

    /// A conversation that a new task was submitted to meanwhile stays as it is, and with it the others of this batch,
    /// until the next pass: a model must not be shown half a conversation.
    async fn prune_tasks(&self, cutoff: Time, limit: u32) -> Result<u64, StoreError> {
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let mut transaction = db.begin().await?;
            let gone = sqlx::query_file!("sql/prune_tasks.sql", first_id_after(cutoff), cutoff, i64::from(limit))
                .fetch_all(&mut *transaction)
                .await?;
            let tenants: Vec<&str> = gone.iter().map(|row| row.tenant.as_str()).collect();
            let conversations: Vec<&str> = gone.iter().map(|row| row.conversation.as_str()).collect();
            let continues = sqlx::query_file_scalar!(
                "sql/any_conversation_continues.sql",
                &tenants as &[&str],
                &conversations as &[&str],
            )
            .fetch_one(&mut *transaction)
            .await?;
            if continues {
                transaction.rollback().await?;
                return Ok(db.done(0));
            }
            transaction.commit().await?;
            let tasks = gone.first().map_or(0, |row| row.tasks);
            Ok(db.done(u64::try_from(tasks).unwrap_or(0)))
        })
        .await
    }

    async fn prune_calls(&self, cutoff: Time, limit: u32) -> Result<u64, StoreError> {
        let bound = first_id_after(cutoff);
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let deleted = sqlx::query_file_scalar!("sql/prune_calls.sql", bound, cutoff, i64::from(limit))
                .fetch_one(&mut *db)
                .await?;
            sqlx::query!("DELETE FROM dead_letters WHERE received_at < $1", cutoff).execute(&mut *db).await?;
            sqlx::query!("DELETE FROM workers WHERE last_seen_at < $1", cutoff).execute(&mut *db).await?;
            Ok(db.done(u64::try_from(deleted).unwrap_or(0)))
        })
        .await
    }
}

/// The smallest version 7 UUID of a later time. Ids are made by dispatchers' clocks, so ten minutes are added for
/// clocks that differ from the database's; `finished_at` decides in the end.
pub(crate) fn first_id_after(time: Time) -> Uuid {
    let ms = (time + TimeDelta::minutes(10)).timestamp_millis();
    Uuid::from_u128(u128::from(u64::try_from(ms).unwrap_or(0)) << 80)
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
