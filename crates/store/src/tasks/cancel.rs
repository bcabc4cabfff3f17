//! Asks for a task to be stopped.

use redial_proto::{TaskId, TaskState};

use crate::{Store, StoreError};

impl Store {
    /// Puts a cancel into the inbox of a task, unless it has ended. Returns its state; `None` if there is no
    /// such task.
    pub async fn cancel_task(&self, task: TaskId) -> Result<Option<TaskState>, StoreError> {
        let state = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let state = sqlx::query_file_scalar!("sql/cancel_task.sql", task.0).fetch_optional(&mut *db).await?;
                Ok(db.done(state))
            })
            .await?;
        state.map(|state| state.parse().map_err(StoreError::BadData)).transpose()
    }
}
