//! Deletes tasks with their messages, steps and inboxes.

use redial_proto::ForgetCounts;
use sqlx::PgConnection;
use uuid::Uuid;

use super::tombstone::{Phase, Tombstone};
use crate::columns::unsigned;

/// Tasks that one step deletes at most: each may have many messages.
const TASKS: u32 = 50;

/// Deletes up to `limit` messages and as many steps of the next tasks of a scope; the tasks themselves once they have none.
pub(super) async fn erase(db: &mut PgConnection, tombstone: &mut Tombstone, limit: u32) -> Result<(), sqlx::Error> {
    let tasks = sqlx::query_file!(
        "sql/forget_lock_tasks.sql",
        tombstone.scope.tenant,
        tombstone.scope.conversation.as_deref(),
        tombstone.position.as_deref().unwrap_or_default(),
        tombstone.until,
        i64::from(limit.min(TASKS))
    );
    let tasks = tasks.fetch_all(&mut *db).await?;
    let Some(last) = tasks.last() else {
        tombstone.go_on_with(Phase::Calls);
        return Ok(());
    };
    if tasks.iter().any(|task| task.open) {
        // It cannot be, and must not be deleted or left out.
        tombstone.go_on_with(Phase::Open);
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
    tombstone.add(&ForgetCounts { messages, steps, ..ForgetCounts::default() }, None, None);
    if messages < u64::from(limit) && steps < u64::from(limit) {
        let gone = sqlx::query_file!("sql/forget_delete_tasks.sql", &ids).fetch_one(&mut *db).await?;
        let (tasks, keys) = (unsigned(gone.tasks), unsigned(gone.keys));
        tombstone.add(&ForgetCounts { tasks, keys, ..ForgetCounts::default() }, gone.first, gone.last);
        tombstone.position = Some(last.conversation.clone());
    }
    Ok(())
}
