//! Writes what was planned for a batch of tasks.

use redial_proto::{TaskCode, TaskId, TaskStep};
use redial_records::{NewCall, TaskOutcome, TaskStatus, TaskTransition, Time};
use sqlx::PgConnection;

use super::{
    messages, turns,
    write::{TaskWrite, Unplanned},
};
use crate::{
    calls,
    columns::{bigint, clean, column, int},
};

pub(super) struct Commit<'a> {
    pub(super) now: Time,
    pub(super) writes: Vec<TaskWrite<'a>>,
    pub(super) unplanned: &'a Unplanned,
    /// How long the job of a new call may stay unclaimed before the sweeper checks it.
    pub(super) check_after_ms: u64,
}

/// Writes everything; the caller commits. Returns the tasks whose turn it is now.
pub(super) async fn write(db: &mut PgConnection, commit: &Commit<'_>) -> Result<Vec<TaskId>, sqlx::Error> {
    messages::write(db, &commit.writes, commit.now).await?;
    write_steps(db, commit).await?;
    let offers = commit.writes.iter().map(|one| one.transition);
    let offers: Vec<_> = offers.flat_map(|one| one.offers.iter().map(|offer| (one.task, offer))).collect();
    turns::write_tools(db, &offers).await?;
    write_calls(db, commit).await?;
    let next = write_tasks(db, commit).await?;
    delete_received(db, &commit.unplanned.received).await?;
    Ok(next)
}

async fn write_steps(db: &mut PgConnection, commit: &Commit<'_>) -> Result<(), sqlx::Error> {
    let transitions = commit.writes.iter().map(|one| one.transition);
    let steps: Vec<(TaskId, &TaskStep)> =
        transitions.flat_map(|one| one.steps.iter().map(|step| (one.task, step))).collect();
    if steps.is_empty() {
        return Ok(());
    }
    sqlx::query_file!(
        "sql/write_steps.sql",
        &column(&steps, |(task, _)| task.0),
        &column(&steps, |(_, step)| int(step.step)),
        &column(&steps, |(_, step)| step.at),
        &column(&steps, |(_, step)| serde_json::json!(step.input).to_string()),
        &column(&steps, |(_, step)| serde_json::json!(step.decisions).to_string()),
    )
    .execute(db)
    .await
    .map(|_| ())
}

async fn write_calls(db: &mut PgConnection, commit: &Commit<'_>) -> Result<(), sqlx::Error> {
    let calls: Vec<&NewCall> = commit.writes.iter().flat_map(|one| &one.transition.calls).collect();
    if calls.is_empty() {
        return Ok(());
    }
    let written = calls::insert(db, &calls, commit.check_after_ms).await?;
    match calls.iter().find(|call| !written.contains(&call.id.0)) {
        None => Ok(()),
        Some(call) => {
            let (id, of) = (call.id, call.task);
            let what = format!("call {id} of {of:?} is on record already, or another one with its index in the turn");
            Err(sqlx::Error::InvalidArgument(what))
        }
    }
}

/// Returns the tasks that come after those that ended.
async fn write_tasks(db: &mut PgConnection, commit: &Commit<'_>) -> Result<Vec<TaskId>, sqlx::Error> {
    if commit.writes.is_empty() && commit.unplanned.skipped.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<&TaskTransition> = commit.writes.iter().map(|one| one.transition).collect();
    let outcomes: Vec<Option<&TaskOutcome>> = rows.iter().map(|row| outcome(row)).collect();
    let cleaned = |text: &Option<String>| text.as_deref().map(clean);
    let written = sqlx::query_file!(
        "sql/advance.sql",
        commit.now,
        &commit.unplanned.skipped,
        &column(&rows, |row| row.task.0),
        &column(&rows, |row| row.status.state().as_str()) as &[&str],
        &column(&rows, |row| row.progress.as_str()) as &[&str],
        &column(&rows, |row| wake_at(row)) as &[Option<Time>],
        &column(&rows, |row| int(row.last_step)),
        &column(&rows, |row| int(row.steps.last().map_or(row.last_step, |step| step.step))),
        &column(&rows, |row| row.starts),
        &column(&outcomes, Option::is_some),
        &column(&outcomes, |ended| ended.map(|ended| TaskCode::as_str(ended.code))) as &[Option<&str>],
        &column(&outcomes, |ended| ended.and_then(|ended| cleaned(&ended.message))) as &[Option<String>],
        &column(&outcomes, |ended| ended.and_then(|ended| cleaned(&ended.answer))) as &[Option<String>],
        &column(&rows, |row| int(row.turns)),
        &column(&rows, |row| int(row.tool_calls)),
        &column(&rows, |row| int(row.corrections)),
        &column(&rows, |row| bigint(row.usage.input_tokens)),
        &column(&rows, |row| bigint(row.usage.output_tokens)),
        &column(&rows, |row| bigint(row.usage.cost_micros.unwrap_or_default())),
        &column(&rows, |row| bigint(row.usage.estimated_input_tokens)),
        &column(&rows, |row| bigint(row.usage.estimated_output_tokens)),
        &column(&rows, |row| bigint(row.usage.estimated_cost_micros)),
        &column(&rows, |row| int(row.usage.turns_without_price)),
    )
    .fetch_all(db)
    .await?;
    if written.len() < rows.len() {
        return Err(sqlx::Error::InvalidArgument("a task changed under its lock".to_owned()));
    }
    Ok(written.into_iter().filter_map(|row| row.next.map(TaskId)).collect())
}

const fn outcome(transition: &TaskTransition) -> Option<&TaskOutcome> {
    match &transition.status {
        TaskStatus::Ended(outcome) => Some(outcome),
        TaskStatus::Waiting { .. } | TaskStatus::Running { .. } => None,
    }
}

const fn wake_at(transition: &TaskTransition) -> Option<Time> {
    match transition.status {
        TaskStatus::Waiting { wake_at } => Some(wake_at),
        TaskStatus::Running { wake_at } => wake_at,
        TaskStatus::Ended(_) => None,
    }
}

async fn delete_received(db: &mut PgConnection, received: &[i64]) -> Result<(), sqlx::Error> {
    if received.is_empty() {
        return Ok(());
    }
    sqlx::query!("DELETE FROM task_inbox WHERE id = ANY ($1)", received).execute(db).await.map(|_| ())
}
