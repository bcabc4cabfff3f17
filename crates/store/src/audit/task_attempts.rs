//! The calls of a task as a timeline needs them.

use redial_api::{TaskCallItem, ran};
use redial_proto::{CallId, CallState, TaskId};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::history::known;
use crate::{
    StoreError, TenantStore,
    columns::{int, uint},
};

/// Bytes of arguments that are read of a call.
const ARGUMENTS: i32 = 16 * 1024;
/// Bytes of an answer of a model that are read, and answers at once.
const REPLY: i32 = 256 * 1024;
const REPLIES: usize = 16;

impl TenantStore<'_> {
    /// Returns the calls of a task behind this position of turn and number, in order, at most `limit`; none of another
    /// tenant. When a call's next attempt starts is when its retry is due; what it waits for and what the model wrote
    /// is not read.
    pub async fn timed_calls(
        &self,
        task: TaskId,
        after: (u32, u32),
        limit: u32,
    ) -> Result<Vec<TaskCallItem>, StoreError> {
        let (turn, index) = after;
        // Before the first: a turn has number 0.
        let index = if turn == 0 { -1 } else { int(index) };
        let rows = on_connection!(self.store(), |db| {
            let rows = sqlx::query_file!(
                "sql/task_attempts.sql",
                task.0,
                self.tenant().as_str(),
                int(turn),
                index,
                ARGUMENTS,
                i64::from(limit),
            );
            rows.fetch_all(db).await
        })?;
        rows.into_iter()
            .map(|row| {
                let bad = |what: String| StoreError::BadData(format!("call {}: {what}", row.call));
                let arguments = row.arguments.map(RawValue::from_string).transpose();
                let state = row.state.parse().map_err(bad)?;
                let effect = row.effect.parse().map_err(bad)?;
                let attempts = uint(row.attempts);
                Ok(TaskCallItem {
                    ran: ran(state, effect, attempts),
                    call: CallId(row.call),
                    turn: uint(row.turn),
                    call_index: uint(row.call_index),
                    tool: row.tool,
                    state,
                    class: known(row.class.as_deref()),
                    message: row.message,
                    effect,
                    pool: row.pool,
                    submitted_at: row.submitted_at,
                    finished_at: row.finished_at,
                    next_attempt_at: row.next_attempt_at,
                    deadline_at: row.deadline_at,
                    lease_until: row.lease_until.filter(|_| state == CallState::Running),
                    waits: None,
                    arguments: arguments.map_err(|error| bad(error.to_string()))?,
                    arguments_bytes: row.arguments_bytes.map(uint),
                    sent: None,
                    repairs: list(row.repairs.as_deref()).map_err(bad)?,
                    details: list(row.details.as_deref()).map_err(bad)?,
                    undeclared: list(row.undeclared.as_deref()).map_err(bad)?,
                    redrive_of: row.redrive_of.map(CallId),
                    redriven_as: row.redriven_as.map(CallId),
                    attempts,
                    attempts_made: list(Some(&row.attempts_made)).map_err(bad)?,
                })
            })
            .collect()
    }

    /// Returns what models answered in these turns of a task, as JSON, one for each turn; a long answer is left out.
    pub async fn replies(&self, task: TaskId, turns: &[u32]) -> Result<Vec<(u32, String)>, StoreError> {
        let mut replies = Vec::new();
        for turns in turns.chunks(REPLIES) {
            let turns: Vec<i32> = turns.iter().copied().map(int).collect();
            let rows = on_connection!(self.store(), |db| {
                sqlx::query_file!("sql/task_replies.sql", task.0, &turns, REPLY).fetch_all(db).await
            })?;
            replies.extend(rows.into_iter().filter_map(|row| Some((uint(row.turn), row.reply?))));
        }
        Ok(replies)
    }

    /// Returns the agent of a task as it was when the task was submitted, and the language of Redial's texts to its
    /// model; `None` if the tenant has no such task.
    pub async fn task_spec(&self, task: TaskId) -> Result<Option<(String, Box<RawValue>)>, StoreError> {
        let found = on_connection!(self.store(), |db| {
            let found = sqlx::query!(
                r#"SELECT language, spec::text AS "spec!" FROM tasks WHERE id = $1 AND tenant = $2"#,
                task.0,
                self.tenant().as_str()
            );
            found.fetch_optional(db).await
        })?;
        let Some(row) = found else { return Ok(None) };
        let bad = |error: serde_json::Error| StoreError::BadData(format!("task {task}: {error}"));
        Ok(Some((row.language, RawValue::from_string(row.spec).map_err(bad)?)))
    }

    /// Estimates the bytes of the record of a task: everything that [`crate::Store::task_calls`] and its conversation
    /// would be.
    pub async fn task_size(&self, task: TaskId) -> Result<u64, StoreError> {
        let bytes = on_connection!(self.store(), |db| sqlx::query_file_scalar!("sql/task_size.sql", task.0)
            .fetch_one(db)
            .await)?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }
}

fn list<T: DeserializeOwned>(json: Option<&str>) -> Result<Vec<T>, String> {
    json.map_or_else(|| Ok(Vec::new()), |json| serde_json::from_str(json).map_err(|error| error.to_string()))
}
