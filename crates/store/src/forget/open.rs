//! What has not ended of a scope that is to be erased, and who may still write.

use redial_proto::{CallId, TaskId};
use uuid::Uuid;

use super::{
    begin, look,
    tombstone::{Phase, Tombstone},
};
use crate::{StoreError, Time, columns::bigint, connect::Store};

/// The next calls of a scope, and those among them that have not ended.
#[derive(Clone, Debug, Default)]
pub struct OpenCalls {
    pub open: Vec<CallId>,
    /// The last one that was looked at; `None` at the end.
    pub last: Option<CallId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenTask {
    pub task: TaskId,
    /// It is asked to stop, and has not read that yet.
    pub is_asked: bool,
}

impl Store {
    /// True if everything is over that dispatchers wrote before the time of a tombstone, or wrote later without seeing it.
    pub async fn writers_are_gone(&self, before: Time) -> Result<bool, StoreError> {
        on_connection!(self, |db| sqlx::query_file_scalar!("sql/forget_writers.sql", before).fetch_one(db).await)
    }

    /// Returns up to twice `limit` tasks of a scope that have not ended.
    pub async fn open_tasks(&self, of: &Tombstone, limit: u32) -> Result<Vec<OpenTask>, StoreError> {
        self.run_again(|| async {
            let mut db = begin(self).await?;
            let rows = sqlx::query_file!(
                "sql/forget_open_tasks.sql",
                of.scope.tenant,
                of.scope.conversation.as_deref(),
                of.until,
                i64::from(limit)
            );
            let rows = rows.fetch_all(&mut *db).await?;
            db.commit().await?;
            Ok(rows.into_iter().map(|row| OpenTask { task: TaskId(row.id), is_asked: row.is_asked }).collect())
        })
        .await
    }

    /// Looks at the next `limit` calls for those that have not ended.
    pub async fn open_calls(&self, of: &Tombstone, limit: u32) -> Result<OpenCalls, StoreError> {
        self.run_again(|| async {
            let mut db = begin(self).await?;
            let looked = look::calls(&mut db, of, limit).await?;
            db.commit().await?;
            Ok(OpenCalls { open: looked.open.into_iter().map(CallId).collect(), last: looked.last.map(CallId) })
        })
        .await
    }

    /// Records that nothing is open up to this call: the look goes on behind it, or, at the end, the deletion begins.
    /// Does nothing if another dispatcher was faster.
    pub async fn looked_at(&self, of: &Tombstone, last: Option<CallId>) -> Result<(), StoreError> {
        let phase = if last.is_some() { Phase::Open } else { Phase::Letters };
        self.go_on(of, phase, last.map(|last| last.0.to_string()), 0).await
    }

    /// Makes the same look due again in so many ms.
    pub async fn look_again(&self, of: &Tombstone, ms: u64) -> Result<(), StoreError> {
        self.go_on(of, Phase::Open, of.position.clone(), ms).await
    }

    async fn go_on(
        &self,
        of: &Tombstone,
        phase: Phase,
        position: Option<String>,
        in_ms: u64,
    ) -> Result<(), StoreError> {
        on_connection!(self, |db| {
            let update = sqlx::query!(
                "UPDATE tombstones
                 SET phase = $1, position = $2, next_at = clock_timestamp() + $3::bigint * interval '1 ms'
                 WHERE id = $4 AND phase = 'open' AND position IS NOT DISTINCT FROM $5",
                phase.as_str(),
                position,
                bigint(in_ms),
                of.id,
                of.position
            );
            update.execute(db).await.map(|_| ())
        })
    }

    /// Returns the calls among these that are about to be erased.
    pub(crate) async fn being_erased(&self, calls: &[CallId]) -> Result<Vec<CallId>, StoreError> {
        let ids: Vec<Uuid> = calls.iter().map(|call| call.0).collect();
        let erased = on_connection!(self, |db| sqlx::query_file_scalar!("sql/forget_being_erased.sql", &ids)
            .fetch_all(db)
            .await)?;
        Ok(erased.into_iter().map(CallId).collect())
    }
}
