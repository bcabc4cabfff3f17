//! What clients ask of tasks: the calls of their functions, and which task is the newest of a conversation.

use redial_proto::{CallId, CallState, TaskId, function};

use crate::{StoreError, TenantStore, columns::uint};

/// A call of a function that a client serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    pub call: CallId,
    /// The turn that asked for it, from 1.
    pub turn: u32,
    /// Its number within that turn, from 1.
    pub call_index: u32,
    pub state: CallState,
}

impl TenantStore<'_> {
    /// Returns the calls of functions that a task asked its client for, in order; none if the tenant has no such task.
    pub async fn functions_of(&self, task: TaskId) -> Result<Vec<FunctionCall>, StoreError> {
        let (store, tenant) = (self.store(), self.tenant());
        let rows = on_connection!(store, |db| {
            let rows =
                sqlx::query_file_as!(FunctionRow, "sql/functions_of_task.sql", task.0, tenant.as_str(), function::POOL);
            rows.fetch_all(db).await
        })?;
        let call = |FunctionRow { id, turn, call_index, state }: FunctionRow| {
            let state = CallState::shown(&state);
            FunctionCall { call: CallId(id), turn: uint(turn), call_index: uint(call_index), state }
        };
        Ok(rows.into_iter().map(call).collect())
    }

    /// Returns the task that asked its client for this call of a function; `None` if the tenant has no such call.
    pub async fn task_of_function(&self, call: CallId) -> Result<Option<TaskId>, StoreError> {
        let (store, tenant) = (self.store(), self.tenant());
        on_connection!(store, |db| {
            let found = sqlx::query_scalar!(
                "SELECT task_id FROM calls WHERE id = $1 AND tenant = $2 AND pool = $3",
                call.0,
                tenant.as_str(),
                function::POOL
            );
            let found = found.fetch_optional(&mut *db).await?;
            Ok(found.flatten().map(TaskId))
        })
    }

    /// Returns the task that was submitted under this key.
    pub async fn task_with_key(&self, key: &str) -> Result<Option<TaskId>, StoreError> {
        let (store, tenant) = (self.store(), self.tenant());
        on_connection!(store, |db| {
            let found =
                sqlx::query_scalar!("SELECT id FROM tasks WHERE tenant = $1 AND key = $2", tenant.as_str(), key);
            let found = found.fetch_optional(&mut *db).await?;
            Ok(found.map(TaskId))
        })
    }

    /// Returns the newest task of a conversation, by the database's clock.
    pub async fn newest_task(&self, conversation: &str) -> Result<Option<TaskId>, StoreError> {
        let (store, tenant) = (self.store(), self.tenant());
        on_connection!(store, |db| {
            let found = sqlx::query_scalar!(
                "SELECT id FROM tasks WHERE tenant = $1 AND conversation = $2
                     ORDER BY submitted_at DESC, id DESC LIMIT 1",
                tenant.as_str(),
                conversation
            );
            let found = found.fetch_optional(&mut *db).await?;
            Ok(found.map(TaskId))
        })
    }
}

struct FunctionRow {
    id: uuid::Uuid,
    turn: i32,
    call_index: i32,
    state: String,
}
