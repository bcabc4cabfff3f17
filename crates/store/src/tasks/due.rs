//! Which tasks are due.

use std::time::Instant;

use redial_proto::TaskId;
use uuid::Uuid;

use crate::{Store, StoreError, low_water::TaskMarks};

impl Store {
    /// Returns up to `limit` tasks with something in their inbox or whose time has come, the longest waiting ones
    /// first, without those of `except`.
    pub async fn due_tasks(&self, limit: u32, except: &[TaskId]) -> Result<Vec<TaskId>, StoreError> {
        let except: Vec<Uuid> = except.iter().map(|task| task.0).collect();
        let began = Instant::now();
        let look = self.low_water.tasks().begin(began);
        let due = on_connection!(self, |db| {
            let due = sqlx::query_file_scalar!("sql/due_tasks.sql", i64::from(limit), &except, look.item, look.wake_at);
            let due = due.fetch_all(&mut *db).await?;
            if look.is_turn {
                let lowest = sqlx::query_file!("sql/lowest_due_tasks.sql", look.item, look.wake_at);
                let lowest = lowest.fetch_one(&mut *db).await?;
                self.low_water.tasks().found(lowest.item, lowest.wake_at, lowest.now, began);
            }
            Ok(due)
        })
        // The server may be another one now.
        .inspect_err(|_| *self.low_water.tasks() = TaskMarks::default())?;
        Ok(due.into_iter().map(TaskId).collect())
    }
}
