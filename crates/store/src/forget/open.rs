//! What has not ended of a scope that is to be erased, and who may still write.

use redial_proto::{CallId, TaskId};
use uuid::Uuid;

use super::{
    look,
    scope::Scope,
    tombstone::{Phase, Tombstone},
};
use crate::{StoreError, Time, connect::Store};

/// The next calls of a scope, and those among them that have not ended.
#[derive(Clone, Debug, Default)]
pub struct OpenCalls {
    /// Those that have not ended.
    pub open: Vec<CallId>,
    /// The last one that was looked at; `None` at the end.
    pub last: Option<CallId>,
}

/// A task that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenTask {
    /// The task.
    pub task: TaskId,
    /// It is asked to stop, and has not read that yet.
    pub is_asked: bool,
}

struct RawTask {
    id: Uuid,
    is_asked: bool,
}

impl Store {
    /// True if everything is over that dispatchers wrote before the time of a tombstone, or wrote later without seeing it.
    pub async fn writers_are_gone(&self, before: Time) -> Result<bool, StoreError> {
        on_connection!(self, |db| sqlx::query_file_scalar!("sql/forget_writers.sql", before).fetch_one(db).await)
    }

    /// Up to twice `limit` tasks of a scope that have not ended.
    pub async fn open_tasks(&self, scope: &Scope, until: Time, limit: u32) -> Result<Vec<OpenTask>, StoreError> {
        let (tenant, limit) = (scope.tenant.as_str(), i64::from(limit));
        let rows = on_connection!(self, |db| {
            let rows = match scope.conversation.as_deref() {
                Some(conversation) => {
                    sqlx::query_file_as!(
                        RawTask,
                        "sql/forget_open_of_conversation.sql",
                        tenant,
                        conversation,
                        until,
                        limit
                    )
                    .fetch_all(&mut *db)
                    .await?
                }
                None => {
                    sqlx::query_file_as!(RawTask, "sql/forget_open_of_tenant.sql", tenant, until, limit)
                        .fetch_all(&mut *db)
                        .await?
                }
            };
            Ok(rows)
        })?;
        Ok(rows.into_iter().map(|row| OpenTask { task: TaskId(row.id), is_asked: row.is_asked }).collect())
    }

    /// Looks at the next `limit` calls for those that have not ended.
    pub async fn open_calls(&self, of: &Tombstone, limit: u32) -> Result<OpenCalls, StoreError> {
        on_connection!(self, |db| {
            let looked = look::calls(&mut *db, &of.scope, of.until, of.after_id, limit).await?;
            let open = looked.open.into_iter().map(CallId).collect();
            Ok(OpenCalls { open, last: looked.last.map(CallId) })
        })
    }

    /// Nothing is open up to this call: the look goes on behind it, or, at the end, the deletion begins. Does nothing if
    /// another dispatcher was faster.
    pub async fn looked_at(&self, of: &Tombstone, last: Option<CallId>) -> Result<(), StoreError> {
        let phase = if last.is_some() { Phase::Open } else { Phase::Letters };
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let update = sqlx::query!(
                "UPDATE tombstones SET phase = $1, after_id = $2, touched_at = clock_timestamp()
                 WHERE id = $3 AND phase = 'open' AND after_id IS NOT DISTINCT FROM $4",
                phase.as_str(),
                last.map(|last| last.0),
                of.id,
                of.after_id
            );
            update.execute(&mut *db).await?;
            db.done(());
            Ok(())
        })
        .await
    }

    /// The calls among these that are about to be erased.
    pub(crate) async fn being_erased(&self, calls: &[CallId]) -> Result<Vec<CallId>, StoreError> {
        let ids: Vec<Uuid> = calls.iter().map(|call| call.0).collect();
        let erased = on_connection!(self, |db| sqlx::query_file_scalar!("sql/forget_being_erased.sql", &ids)
            .fetch_all(db)
            .await)?;
        Ok(erased.into_iter().map(CallId).collect())
    }
}
