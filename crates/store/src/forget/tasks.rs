//! Deletes tasks with their messages, steps and inboxes.

use redial_proto::{ForgetCounts, TaskId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    progress::Progress,
    scope::Scope,
    tombstone::{Phase, Tombstone},
};
use crate::{StoreError, Time, columns::unsigned, connect::Store};

/// Tasks that one step deletes at most: each may have many messages.
const TASKS: u32 = 50;

/// A task, in the order in which they are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPosition {
    /// Its conversation.
    pub conversation: String,
    /// When it was submitted.
    pub submitted_at: Time,
    /// The task.
    pub task: TaskId,
}

/// Some tasks of a scope, counted.
#[derive(Clone, Debug, Default)]
pub struct CountedTasks {
    /// The tasks, and what belongs to them.
    pub counts: ForgetCounts,
    /// Those that have not ended.
    pub open: u64,
    /// The last one; `None` at the end.
    pub last: Option<TaskPosition>,
}

struct RawCount {
    id: Uuid,
    conversation: String,
    submitted_at: Time,
    open: bool,
    has_key: bool,
    messages: i64,
    steps: i64,
}

struct RawTask {
    id: Uuid,
    conversation: String,
    open: bool,
}

impl Store {
    /// Counts what would be erased of the next `limit` tasks behind a position.
    pub async fn count_tasks(
        &self,
        scope: &Scope,
        after: Option<&TaskPosition>,
        limit: u32,
    ) -> Result<CountedTasks, StoreError> {
        let (tenant, limit) = (scope.tenant.as_str(), i64::from(limit));
        let after_time = after.map_or(Time::UNIX_EPOCH, |after| after.submitted_at);
        let after_task = after.map_or(Uuid::nil(), |after| after.task.0);
        let rows = on_connection!(self, |db| {
            let rows = if let Some(conversation) = scope.conversation.as_deref() {
                sqlx::query_file_as!(
                    RawCount,
                    "sql/forget_count_of_conversation.sql",
                    tenant,
                    conversation,
                    after_time,
                    after_task,
                    limit
                )
                .fetch_all(&mut *db)
                .await?
            } else {
                let after = after.map_or("", |after| after.conversation.as_str());
                sqlx::query_file_as!(
                    RawCount,
                    "sql/forget_count_of_tenant.sql",
                    tenant,
                    after,
                    after_time,
                    after_task,
                    limit
                )
                .fetch_all(&mut *db)
                .await?
            };
            Ok(rows)
        })?;
        let mut counted = CountedTasks::default();
        for row in rows {
            counted.counts.tasks += 1;
            counted.counts.keys += u64::from(row.has_key);
            counted.counts.messages += unsigned(row.messages);
            counted.counts.steps += unsigned(row.steps);
            counted.open += u64::from(row.open);
            let (conversation, submitted_at, task) = (row.conversation, row.submitted_at, TaskId(row.id));
            counted.last = Some(TaskPosition { conversation, submitted_at, task });
        }
        Ok(counted)
    }
}

/// Deletes up to `limit` messages and as many steps of the next tasks of a scope; the tasks themselves once they have none.
pub(super) async fn erase(
    db: &mut PgConnection,
    tombstone: &Tombstone,
    progress: &mut Progress,
    limit: u32,
) -> Result<(), sqlx::Error> {
    let tasks = lock(&mut *db, tombstone, limit.min(TASKS)).await?;
    let Some(last) = tasks.last() else {
        progress.go_on_with(Phase::Calls);
        return Ok(());
    };
    if tasks.iter().any(|task| task.open) {
        // It cannot be, and must not be deleted or left out.
        progress.go_on_with(Phase::Open);
        return Ok(());
    }
    let ids: Vec<Uuid> = tasks.iter().map(|task| task.id).collect();
    let most = i64::from(limit);
    let messages = sqlx::query!(
        "DELETE FROM messages WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM messages WHERE task_id = ANY ($1) LIMIT $2 FOR UPDATE))",
        &ids,
        most
    )
    .execute(&mut *db)
    .await?
    .rows_affected();
    let steps = sqlx::query!(
        "DELETE FROM task_steps WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM task_steps WHERE task_id = ANY ($1) LIMIT $2 FOR UPDATE))",
        &ids,
        most
    )
    .execute(&mut *db)
    .await?
    .rows_affected();
    progress.erased = ForgetCounts { messages, steps, ..ForgetCounts::default() };
    if messages < u64::from(limit) && steps < u64::from(limit) {
        let gone = sqlx::query_file!("sql/forget_delete_tasks.sql", &ids).fetch_one(&mut *db).await?;
        progress.erased.tasks = unsigned(gone.tasks);
        progress.erased.keys = unsigned(gone.keys);
        (progress.first, progress.last) = (gone.first, gone.last);
        progress.after_text = Some(last.conversation.clone());
    }
    Ok(())
}

async fn lock(db: &mut PgConnection, tombstone: &Tombstone, limit: u32) -> Result<Vec<RawTask>, sqlx::Error> {
    let (tenant, limit) = (tombstone.scope.tenant.as_str(), i64::from(limit));
    if let Some(conversation) = tombstone.scope.conversation.as_deref() {
        sqlx::query_file_as!(
            RawTask,
            "sql/forget_lock_of_conversation.sql",
            tenant,
            conversation,
            tombstone.until,
            limit
        )
        .fetch_all(db)
        .await
    } else {
        let from = tombstone.after_text.as_deref().unwrap_or_default();
        sqlx::query_file_as!(RawTask, "sql/forget_lock_of_tenant.sql", tenant, from, tombstone.until, limit)
            .fetch_all(db)
            .await
    }
}
