//! Writes a varied history: thirty days of calls, their attempts and tasks.

use chrono::{TimeDelta, Utc};
use redial_proto::{CallId, TaskId};

use crate::{
    database::{Database, Past},
    output::note,
};

/// How far the history goes back.
const HOURS: u32 = 30 * 24;
/// Steps of the fill.
const STEPS: u32 = 20;

/// What questions can name.
pub(crate) struct Filled {
    pub(crate) calls: u32,
    /// A call and a task in its middle.
    pub(crate) call: CallId,
    pub(crate) task: TaskId,
}

pub(crate) async fn fill(database: &Database, calls: u32) -> anyhow::Result<Filled> {
    let now = Utc::now();
    let (all, an_hour) = (i64::from(calls), i64::from(calls / HOURS).max(1));
    let past = Past { end: now, an_hour, calls: all };
    let step = all / i64::from(STEPS) + 1;
    for n in 0..i64::from(STEPS) {
        let (from, until) = (n * step, all.min((n + 1) * step));
        let (calls, tasks) =
            (include_str!("../../sql/fill_varied_calls.sql"), include_str!("../../sql/fill_varied_tasks.sql"));
        database.fill_varied(calls, from..until, &past).await?;
        if n + 1 == i64::from(STEPS) {
            database.fill_varied(tasks, 0..all / 50, &past).await?;
            database.execute(include_str!("../../sql/fill_varied_steps.sql")).await?;
            database.execute(include_str!("../../sql/fill_varied_places.sql")).await?;
        }
        note(&format!("{until} calls written"));
    }
    // As ids have whole milliseconds, a little is added on both sides.
    let begin = now - TimeDelta::hours(all / an_hour + 2);
    let span = (now - begin) / i32::try_from(STEPS)?;
    for n in 0..=i32::try_from(STEPS)? {
        let from = begin + span * n;
        database.fill_varied_attempts(from, from + span).await?;
        note(&format!("attempts: {n} of {STEPS} parts written"));
    }
    let ended = "INSERT INTO uncounted_calls SELECT id, finished_at FROM calls WHERE finished_at IS NOT NULL";
    database.execute(ended).await?;
    database.execute("VACUUM ANALYZE").await?;
    database.vacuum().await?;
    let (call, task) = database.middle().await?;
    Ok(Filled { calls, call: CallId(call), task: TaskId(task) })
}
