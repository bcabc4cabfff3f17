//! Rows of tasks, and how they are locked.

use redial_proto::TaskId;
use redial_records::{TaskRecord, Time};
use sqlx::PgConnection;
use uuid::Uuid;

use super::unreadable;
use crate::columns::uint;

struct RawTask {
    id: Uuid,
    tenant: String,
    conversation: String,
    state: String,
    language: String,
    spec: String,
    input: String,
    progress: Option<String>,
    last_step: i32,
    submitted_at: Time,
    wake_at: Option<Time>,
    traceparent: Option<String>,
    read_at: Time,
}

impl TryFrom<RawTask> for TaskRecord {
    type Error = String;

    fn try_from(raw: RawTask) -> Result<Self, String> {
        Ok(Self {
            id: TaskId(raw.id),
            tenant: raw.tenant,
            conversation: raw.conversation,
            state: raw.state.parse()?,
            language: raw.language.parse()?,
            spec: raw.spec,
            input: raw.input,
            progress: raw.progress,
            last_step: uint(raw.last_step),
            submitted_at: raw.submitted_at,
            wake_at: raw.wake_at,
            traceparent: raw.traceparent,
            read_at: raw.read_at,
            inbox: Vec::new(),
            start: None,
        })
    }
}

/// Locks tasks in the order of their ids, which keeps deadlocks rare, and reads them as they are once they are locked.
pub(super) async fn lock(db: &mut PgConnection, ids: &[Uuid], wait: bool) -> Result<Vec<TaskRecord>, sqlx::Error> {
    let rows = if wait {
        sqlx::query_file_as!(RawTask, "sql/lock_tasks.sql", ids).fetch_all(db).await?
    } else {
        sqlx::query_file_as!(RawTask, "sql/lock_free_tasks.sql", ids).fetch_all(db).await?
    };
    rows.into_iter().map(|row| TaskRecord::try_from(row).map_err(unreadable)).collect()
}
