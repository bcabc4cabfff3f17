//! People's questions about tasks.

use redial_proto::{TaskId, TaskState, TaskView};

use super::{
    CallAudit, TaskFilter,
    history::{since_id, until_id},
    record::RawRecord,
};
use crate::{
    Store, StoreError,
    tasks::{RawView, leave_out_messages},
};

impl Store {
    /// Returns the newest tasks that a filter lets through.
    pub async fn tasks(&self, filter: &TaskFilter, limit: u32) -> Result<Vec<TaskView>, StoreError> {
        let rows = on_connection!(self, |db| {
            sqlx::query_file_as!(
                RawView,
                "sql/tasks.sql",
                filter.state.map(TaskState::as_str),
                filter.conversation.as_deref(),
                filter.tenant.as_deref().or(filter.conversation.as_ref().map(|_| "default")),
                filter.agent.as_deref(),
                filter.since,
                since_id(filter.since),
                filter.before.map(|before| before.0),
                i64::from(limit),
                filter.until,
                until_id(filter.until),
            )
            .fetch_all(db)
            .await
        })?;
        Ok(rows.into_iter().map(TaskView::from).collect())
    }

    /// Returns every call that a task asked for, by turn and call_index; model turns are call_index 0, without the
    /// messages that they saw.
    pub async fn task_calls(&self, task: TaskId) -> Result<Vec<CallAudit>, StoreError> {
        let rows = on_connection!(self, |db| {
            let mut done = sqlx::query_file_as!(RawRecord, "sql/task_calls.sql", task.0).fetch_all(&mut *db).await?;
            let turns = done.iter_mut().filter(|head| head.is_turn()).map(|head| (task, &mut head.arguments));
            leave_out_messages(&mut *db, turns.collect()).await?;
            Ok(done)
        })?;
        self.records(rows).await
    }
}
