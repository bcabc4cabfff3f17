//! Which tasks are due.

use redial_proto::TaskId;
use uuid::Uuid;

use crate::{Store, StoreError};

impl Store {
    /// Up to `limit` tasks with something in their inbox or whose time has come, the longest waiting ones first, without
    /// those of `except`.
    pub async fn due_tasks(&self, limit: u32, except: &[TaskId]) -> Result<Vec<TaskId>, StoreError> {
        let except: Vec<Uuid> = except.iter().map(|task| task.0).collect();
        let due = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let due = sqlx::query_file_scalar!("sql/due_tasks.sql", i64::from(limit), &except)
                    .fetch_all(&mut *db)
                    .await?;
                Ok(db.done(due))
            })
            .await?;
        Ok(due.into_iter().map(TaskId).collect())
    }
}
