//! What ended since a time.

use redial_api::EndedItem;
use redial_proto::{CallId, TaskId};
use uuid::Uuid;

use crate::{StoreError, TenantStore, Time, columns::uint};

/// A position in the order of ends: a time, and the last id of those that ended then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndedPosition {
    pub at: Time,
    /// The id; nil: before all that ended then.
    pub id: Uuid,
}

impl EndedPosition {
    /// Makes the position before all that ended at this time.
    pub const fn before(at: Time) -> Self {
        Self { at, id: Uuid::nil() }
    }

    /// Returns where an end is in the order of ends.
    pub fn of(item: &EndedItem) -> Self {
        let id = item.call.map(|call| call.0).or(item.task.map(|task| task.0));
        Self { at: item.at, id: id.unwrap_or_default() }
    }
}

impl TenantStore<'_> {
    /// Returns calls and tasks of the tenant that ended after a position, in the order of their ends: `limit` at most.
    /// What is committed later may have ended before what is returned: see [`crate::stats::Fence`].
    pub async fn ended_since(&self, after: EndedPosition, limit: u32) -> Result<Vec<EndedItem>, StoreError> {
        let tenant = self.tenant().as_str();
        let rows = on_connection!(self.store(), |db| {
            let ended = sqlx::query_file!("sql/ended_since.sql", tenant, after.at, after.id, i64::from(limit));
            ended.fetch_all(db).await
        })?;
        let mut ended = Vec::with_capacity(rows.len());
        for row in rows {
            let (of_call, of_task) = (!row.is_task, row.is_task);
            let asked_for = if of_task { Some(row.id) } else { row.task };
            ended.push(EndedItem {
                call: of_call.then_some(CallId(row.id)),
                task: asked_for.map(TaskId),
                tool: row.name.clone().filter(|_| of_call),
                agent: row.name.filter(|_| of_task),
                state: row.state,
                class: row.class.clone().filter(|_| of_call),
                code: row.class.filter(|_| of_task),
                attempts: row.attempts.map(uint),
                at: row.at,
            });
        }
        Ok(ended)
    }
}
