//! How far calls and tasks are, for those who wait for many of them.

use std::collections::HashMap;

use redial_proto::{CallId, CallState, TaskId, TaskView};
use uuid::Uuid;

use crate::{Store, StoreError, TenantStore, columns::column};

/// How far a call or a task is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    pub id: Uuid,
    pub tenant: String,
    /// A number that changes with whatever happens to it. Otherwise it means nothing, but see [`Progress::has_ended`].
    pub position: i64,
}

impl Progress {
    /// True if it has ended: the lowest bit of the position.
    pub const fn has_ended(&self) -> bool {
        self.position & 1 == 1
    }
}

impl Store {
    /// Returns how far these calls and tasks are; those that are not on record are left out.
    pub async fn progress(&self, ids: &[Uuid]) -> Result<Vec<Progress>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        on_connection!(self, |db| sqlx::query_file_as!(Progress, "sql/progress.sql", ids).fetch_all(db).await)
    }
}

impl TenantStore<'_> {
    /// Returns the states of these calls; those that the tenant does not have are left out.
    pub async fn call_states(&self, calls: &[CallId]) -> Result<HashMap<CallId, CallState>, StoreError> {
        let ids: Vec<Uuid> = column(calls, |call| call.0);
        let rows = on_connection!(self.store(), |db| {
            let rows = sqlx::query!(
                "SELECT id, state FROM calls WHERE id = ANY ($1) AND tenant = $2",
                &ids,
                self.tenant().as_str()
            );
            rows.fetch_all(db).await
        })?;
        Ok(rows.into_iter().map(|row| (CallId(row.id), CallState::shown(&row.state))).collect())
    }

    /// Returns a task without its steps; `None` if the tenant has no such task.
    pub async fn task(&self, task: TaskId) -> Result<Option<TaskView>, StoreError> {
        self.store().task_view(self.tenant(), task).await
    }

    /// Returns the newest turn of a task, and whether its model has not answered yet; `None` before the first turn.
    pub async fn newest_turn(&self, task: TaskId) -> Result<Option<(u32, bool)>, StoreError> {
        let row = on_connection!(self.store(), |db| {
            let row = sqlx::query!(
                r#"SELECT turn AS "turn!", finished_at IS NULL AS "open!" FROM calls_of_tasks
                       WHERE task_id = $1 AND tenant = $2 AND call_index = 0 ORDER BY turn DESC LIMIT 1"#,
                task.0,
                self.tenant().as_str()
            );
            row.fetch_optional(db).await
        })?;
        Ok(row.map(|row| (crate::uint(row.turn), row.open)))
    }
}
