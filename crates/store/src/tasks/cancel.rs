//! Asks for a task to be stopped.

use redial_proto::{TaskId, TaskState};

use crate::{Store, StoreError};

impl Store {
    /// Tells a task that its user wants it stopped, unless it has ended. Returns where it stands; `None` if there is no
    /// such task.
    pub async fn cancel_task(&self, task: TaskId) -> Result<Option<TaskState>, StoreError> {
        let state = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let state = sqlx::query_scalar!(
                    "WITH found AS (
                         SELECT id, state, finished_at FROM tasks WHERE id = $1
                     ), told AS (
                         INSERT INTO task_inbox (task_id, kind) SELECT id, 'cancel' FROM found WHERE finished_at IS NULL
                     )
                     SELECT state FROM found",
                    task.0,
                )
                .fetch_optional(&mut *db)
                .await?;
                Ok(db.done(state))
            })
            .await?;
        state.map(|state| state.parse().map_err(StoreError::BadData)).transpose()
    }
}
