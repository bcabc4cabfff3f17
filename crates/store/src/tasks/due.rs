//! Which tasks are due.

use redial_proto::TaskId;

use crate::{Store, StoreError};

impl Store {
    /// Up to `limit` tasks with something in their inbox or whose time has come, the longest waiting ones first.
    pub async fn due_tasks(&self, limit: u32) -> Result<Vec<TaskId>, StoreError> {
        let due = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let due = sqlx::query_file_scalar!("sql/due_tasks.sql", i64::from(limit)).fetch_all(&mut *db).await?;
                Ok(db.done(due))
            })
            .await?;
        Ok(due.into_iter().map(TaskId).collect())
    }
}
