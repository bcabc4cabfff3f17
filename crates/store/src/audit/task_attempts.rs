//! The calls of a task as a timeline needs them.

use redial_proto::TaskId;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{
    StoreError, TenantStore, Time,
    columns::{int, uint},
};

/// Bytes of arguments that are read of a call.
const ARGUMENTS: i32 = 16 * 1024;
/// Bytes of an answer of a model that are read, and answers at once.
const REPLY: i32 = 256 * 1024;
const REPLIES: usize = 16;

/// A call of a task with its attempts.
#[derive(Debug)]
pub struct TimedCall {
    /// Its id.
    pub call: Uuid,
    /// The turn that asked for it.
    pub turn: u32,
    /// Its number within the turn, from 1; 0 is the turn itself.
    pub call_index: u32,
    /// The tool; of a turn the model's registered name.
    pub tool: String,
    /// Its state.
    pub state: String,
    /// Why it ended without success.
    pub class: Option<String>,
    /// The same in words.
    pub message: Option<String>,
    /// The pool whose workers run it.
    pub pool: String,
    /// What the tool does to the world.
    pub effect: String,
    /// When it was accepted.
    pub submitted_at: Time,
    /// When it ended.
    pub finished_at: Option<Time>,
    /// When its retry is due.
    pub next_attempt_at: Option<Time>,
    /// No attempt starts later.
    pub deadline_at: Time,
    /// Until when the worker that runs it holds it.
    pub lease_until: Option<Time>,
    /// Attempts that were started.
    pub attempts: u32,
    /// Bytes of its arguments; `None` for a turn.
    pub arguments_bytes: Option<u32>,
    /// Its arguments, unless they are long or it is a turn.
    pub arguments: Option<Box<RawValue>>,
    /// A list of repairs.
    pub repairs: Option<Box<RawValue>>,
    /// A list of broken rules.
    pub details: Option<Box<RawValue>>,
    /// A list of pointers.
    pub undeclared: Option<Box<RawValue>>,
    /// The ended call that it runs again.
    pub redrive_of: Option<Uuid>,
    /// The call that runs it again.
    pub redriven_as: Option<Uuid>,
    /// Its last 20 attempts, oldest first, the running one included.
    pub attempts_made: Vec<TimedAttempt>,
}

/// An attempt of a call, without its result.
#[derive(Debug, Deserialize)]
pub struct TimedAttempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// The worker that ran it.
    pub worker: String,
    /// When it was granted.
    pub started_at: Time,
    /// When its end was committed.
    pub ended_at: Option<Time>,
    /// How long the tool ran, in ms, by the worker's clock.
    pub duration_ms: Option<u64>,
    /// Why it failed.
    pub class: Option<String>,
    /// The same in words, its first 500 characters.
    pub message: Option<String>,
    /// When its retry was due.
    pub retry_at: Option<Time>,
}

impl TenantStore<'_> {
    /// The calls of a task behind this position of turn and number, in order, at most `limit`; none of another tenant.
    pub async fn timed_calls(&self, task: TaskId, after: (u32, u32), limit: u32) -> Result<Vec<TimedCall>, StoreError> {
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
        let bad = |call: Uuid, error: serde_json::Error| StoreError::BadData(format!("call {call}: {error}"));
        let json = |call: Uuid, text: Option<String>| {
            text.map(RawValue::from_string).transpose().map_err(|error| bad(call, error))
        };
        rows.into_iter()
            .map(|row| {
                Ok(TimedCall {
                    turn: uint(row.turn),
                    call_index: uint(row.call_index),
                    tool: row.tool,
                    state: row.state,
                    class: row.class,
                    message: row.message,
                    pool: row.pool,
                    effect: row.effect,
                    submitted_at: row.submitted_at,
                    finished_at: row.finished_at,
                    next_attempt_at: row.next_attempt_at,
                    deadline_at: row.deadline_at,
                    lease_until: row.lease_until,
                    attempts: uint(row.attempts),
                    arguments_bytes: row.arguments_bytes.map(uint),
                    arguments: json(row.call, row.arguments)?,
                    repairs: json(row.call, row.repairs)?,
                    details: json(row.call, row.details)?,
                    undeclared: json(row.call, row.undeclared)?,
                    redrive_of: row.redrive_of,
                    redriven_as: row.redriven_as,
                    attempts_made: serde_json::from_str(&row.attempts_made).map_err(|error| bad(row.call, error))?,
                    call: row.call,
                })
            })
            .collect()
    }

    /// What models answered in these turns of a task, as JSON, one for each turn; a long answer is left out.
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

    /// The agent of a task as it was when the task was submitted, and the language of Redial's texts to its model; `None` if the
    /// tenant has no such task.
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

    /// About how many bytes the record of a task holds: everything that [`crate::Store::task_calls`] and its conversation would be.
    pub async fn task_size(&self, task: TaskId) -> Result<u64, StoreError> {
        let bytes = on_connection!(self.store(), |db| sqlx::query_file_scalar!("sql/task_size.sql", task.0)
            .fetch_one(db)
            .await)?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }
}
