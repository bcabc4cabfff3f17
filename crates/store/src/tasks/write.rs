//! Writes what was decided about a batch of tasks.

use std::collections::HashMap;

use redial_proto::{CallId, TaskCode, TaskId, TaskStep};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Advanced, TaskChange,
    batch::{Decided, Decision},
    messages,
};
use redial_records::NewCall;

use crate::{Time, calls, clean, int};

/// Writes everything; the caller commits.
pub(super) async fn all(
    db: &mut PgConnection,
    decided: Decided,
    check_after_ms: u64,
) -> Result<Vec<Advanced>, sqlx::Error> {
    let decisions = &decided.changes;
    messages::write(db, decisions, decided.now).await?;
    write_steps(db, decisions).await?;
    write_calls(db, decisions, check_after_ms).await?;
    let mut next = write_tasks(db, &decided).await?;
    hold(db, &decided.held).await?;
    forget_received(db, &decided.received).await?;
    let mut stop = find_calls(db, decisions).await?;
    let advanced = decided.changes.into_iter().map(|Decision { change, .. }| Advanced {
        stop: stop.remove(&change.id).unwrap_or_default(),
        next: next.remove(&change.id),
        change,
    });
    Ok(advanced.collect())
}

async fn write_steps(db: &mut PgConnection, decisions: &[Decision]) -> Result<(), sqlx::Error> {
    let steps: Vec<(TaskId, &TaskStep)> =
        decisions.iter().flat_map(|one| one.change.steps.iter().map(|step| (one.change.id, step))).collect();
    if steps.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = steps.iter().map(|(task, _)| task.0).collect();
    let numbers: Vec<i32> = steps.iter().map(|(_, step)| int(step.n)).collect();
    let times: Vec<Time> = steps.iter().map(|(_, step)| step.at).collect();
    let inputs: Vec<String> = steps.iter().map(|(_, step)| serde_json::json!(step.input).to_string()).collect();
    let texts: Vec<String> = steps.iter().map(|(_, step)| serde_json::json!(step.decisions).to_string()).collect();
    sqlx::query_file!("sql/write_steps.sql", &ids, &numbers, &times, &inputs, &texts).execute(db).await.map(|_| ())
}

async fn write_calls(db: &mut PgConnection, decisions: &[Decision], check_after_ms: u64) -> Result<(), sqlx::Error> {
    let calls: Vec<&NewCall> = decisions.iter().flat_map(|one| &one.change.calls).collect();
    if calls.is_empty() {
        return Ok(());
    }
    let written = calls::insert(db, &calls, check_after_ms).await?;
    match calls.iter().find(|call| !written.contains(&call.id.0)) {
        None => Ok(()),
        Some(call) => {
            let what =
                format!("call {} of {:?} is on record already, or another one of its call_index", call.id, call.task);
            Err(sqlx::Error::InvalidArgument(what))
        }
    }
}

/// Returns for each task that ended the one that comes next.
async fn write_tasks(db: &mut PgConnection, decided: &Decided) -> Result<HashMap<TaskId, TaskId>, sqlx::Error> {
    let rows = &decided.changes;
    if rows.is_empty() && decided.skipped.is_empty() {
        return Ok(HashMap::new());
    }
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let cleaned = |text: &Option<String>| text.as_deref().map(clean);
    let written = sqlx::query_file!(
        "sql/advance.sql",
        &column(rows, |c| c.id.0),
        decided.now,
        &column(rows, |c| c.state.as_str()) as &[&str],
        &column(rows, |c| c.progress.as_str()) as &[&str],
        &column(rows, |c| c.wake_at) as &[Option<Time>],
        &rows.iter().map(|one| int(one.last_step)).collect::<Vec<_>>(),
        &rows.iter().map(|one| int(last_step(one))).collect::<Vec<_>>(),
        &rows.iter().map(|one| one.starts).collect::<Vec<_>>(),
        &column(rows, |c| c.state.is_terminal()),
        &column(rows, |c| c.code.map(TaskCode::as_str)) as &[Option<&str>],
        &column(rows, |c| cleaned(&c.message)) as &[Option<String>],
        &column(rows, |c| cleaned(&c.answer)) as &[Option<String>],
        &column(rows, |c| int(c.turns)),
        &column(rows, |c| int(c.tool_calls)),
        &column(rows, |c| int(c.corrections)),
        &column(rows, |c| number(c.usage.input_tokens)),
        &column(rows, |c| number(c.usage.output_tokens)),
        &column(rows, |c| number(c.usage.cost_micros)),
        &decided.skipped,
    )
    .fetch_all(db)
    .await?;
    if written.len() < rows.len() {
        return Err(sqlx::Error::InvalidArgument("a task changed under its lock".to_owned()));
    }
    Ok(written.into_iter().filter_map(|row| Some((TaskId(row.id), TaskId(row.next?)))).collect())
}

fn last_step(one: &Decision) -> u32 {
    one.change.steps.last().map_or(one.last_step, |step| step.n)
}

fn column<'a, T>(decisions: &'a [Decision], field: impl Fn(&'a TaskChange) -> T) -> Vec<T> {
    decisions.iter().map(|one| field(&one.change)).collect()
}

/// Lets tasks wait on. The end of the task before them tells them that their turn has come, so this look is only for a
/// task that was submitted while that one ended, and neither saw the other: the longer it has waited, the less likely.
async fn hold(db: &mut PgConnection, tasks: &[Uuid]) -> Result<(), sqlx::Error> {
    if tasks.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "UPDATE tasks
         SET wake_at = t.now + LEAST(GREATEST(t.now - submitted_at, interval '1 s'), interval '30 s')
         FROM (SELECT clock_timestamp() AS now) t
         WHERE id = ANY ($1)",
        tasks,
    )
    .execute(db)
    .await
    .map(|_| ())
}

async fn forget_received(db: &mut PgConnection, received: &[i64]) -> Result<(), sqlx::Error> {
    if received.is_empty() {
        return Ok(());
    }
    sqlx::query!("DELETE FROM task_inbox WHERE id = ANY ($1)", received).execute(db).await.map(|_| ())
}

/// The calls to stop that have not ended, by task.
async fn find_calls(
    db: &mut PgConnection,
    decisions: &[Decision],
) -> Result<HashMap<TaskId, Vec<CallId>>, sqlx::Error> {
    let slots: Vec<(TaskId, u32, u32)> = decisions
        .iter()
        .flat_map(|one| one.change.cancel.iter().map(|(turn, call_index)| (one.change.id, *turn, *call_index)))
        .collect();
    let mut found = HashMap::<TaskId, Vec<CallId>>::new();
    if slots.is_empty() {
        return Ok(found);
    }
    let rows = sqlx::query!(
        r#"SELECT c.id AS "id!", i.task_id AS "task!"
           FROM UNNEST($1::uuid[], $2::int[], $3::int[]) AS i (task_id, turn, call_index)
           CROSS JOIN LATERAL (
               SELECT id FROM calls
               WHERE task_id = i.task_id AND turn = i.turn AND call_index = i.call_index AND wake_at IS NOT NULL LIMIT 1
           ) c"#,
        &slots.iter().map(|call_index| call_index.0.0).collect::<Vec<_>>(),
        &slots.iter().map(|call_index| int(call_index.1)).collect::<Vec<_>>(),
        &slots.iter().map(|call_index| int(call_index.2)).collect::<Vec<_>>(),
    )
    .fetch_all(db)
    .await?;
    for row in rows {
        found.entry(TaskId(row.task)).or_default().push(CallId(row.id));
    }
    Ok(found)
}
