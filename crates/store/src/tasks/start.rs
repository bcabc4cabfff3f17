//! Which waiting tasks may start, and what their conversations left for them.

use std::collections::HashMap;

use redial_proto::TaskId;
use redial_records::{StartInfo, TaskRecord, Time};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::columns::uint;

#[derive(Default)]
pub(super) struct Starts {
    pub(super) tasks: HashMap<TaskId, StartInfo>,
    /// Later than the end of whatever ran before them; `None` if there are none.
    pub(super) now: Option<Time>,
}

/// Returns those of these waiting tasks that may start: no task of their conversation runs, and no older one waits.
pub(super) async fn may_start(db: &mut PgConnection, waiting: &[&TaskRecord]) -> Result<Starts, sqlx::Error> {
    if waiting.is_empty() {
        return Ok(Starts::default());
    }
    let ids: Vec<Uuid> = waiting.iter().map(|task| task.id.0).collect();
    let tenants: Vec<&str> = waiting.iter().map(|task| task.tenant.as_str()).collect();
    let conversations: Vec<&str> = waiting.iter().map(|task| task.conversation.as_str()).collect();
    let submitted: Vec<Time> = waiting.iter().map(|task| task.submitted_at).collect();
    let rows = sqlx::query_file!("sql/may_start.sql", &ids, &tenants as &[&str], &conversations as &[&str], &submitted)
        .fetch_all(db)
        .await?;
    let info = |next_seq, system, carried| StartInfo { next_seq: uint(next_seq), system, carried };
    let now = rows.iter().map(|row| row.now).max();
    let tasks = rows.into_iter().map(|row| (TaskId(row.id), info(row.next_seq, row.system, row.carried))).collect();
    Ok(Starts { tasks, now })
}
