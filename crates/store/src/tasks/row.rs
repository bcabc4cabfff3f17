//! Rows of tasks, and how they are locked.

use redial_proto::TaskId;
use redial_records::{TaskRecord, Time};
use sqlx::PgConnection;
use uuid::Uuid;

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
/// A task that this version cannot read is named instead.
pub(super) async fn lock(db: &mut PgConnection, ids: &[Uuid], wait: bool) -> Result<LockedRows, sqlx::Error> {
    let rows = if wait {
        sqlx::query_file_as!(RawTask, "sql/lock_tasks.sql", ids).fetch_all(db).await?
    } else {
        sqlx::query_file_as!(RawTask, "sql/lock_free_tasks.sql", ids).fetch_all(db).await?
    };
    let mut locked = LockedRows::default();
    for row in rows {
        let id = row.id;
        match TaskRecord::try_from(row) {
            Ok(record) => locked.records.push(record),
            Err(reason) => locked.unreadable.push(UnreadableTask { task: TaskId(id), reason }),
        }
    }
    Ok(locked)
}

/// A task whose row, or inbox, holds what this version does not know: a newer version wrote it, or somebody changed it by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableTask {
    /// The task.
    pub task: TaskId,
    /// What cannot be read.
    pub reason: String,
}

/// Locked rows.
#[derive(Default)]
pub(super) struct LockedRows {
    pub(super) records: Vec<TaskRecord>,
    pub(super) unreadable: Vec<UnreadableTask>,
}
