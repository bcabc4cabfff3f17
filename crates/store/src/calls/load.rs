//! Reads what decisions are made from.

use std::collections::HashMap;

use redial_proto::{CallId, ClaimId};
use redial_records::{CallContent, CallRecord, Time};
use uuid::Uuid;

use crate::{StoreError, columns::uint, connect::Store};

/// A row of `load.sql` and `lock_due_calls.sql`.
pub(super) struct RawCall {
    pub(super) id: Uuid,
    pub(super) state: String,
    pub(super) attempt: i32,
    pub(super) tool: String,
    pub(super) pool: String,
    pub(super) effect: String,
    pub(super) retry: Option<String>,
    pub(super) timeout_ms: i64,
    pub(super) traceparent: Option<String>,
    pub(super) deadline_at: Time,
    pub(super) worker: Option<String>,
    pub(super) claim_id: Option<Uuid>,
    pub(super) lease_until: Option<Time>,
    pub(super) cancel_requested: bool,
    pub(super) publish_no: i32,
    pub(super) published_at: Time,
    pub(super) origin_id: Option<Uuid>,
    pub(super) read_at: Time,
}

impl TryFrom<RawCall> for CallRecord {
    type Error = StoreError;

    fn try_from(raw: RawCall) -> Result<Self, StoreError> {
        let bad = |error: String| StoreError::BadData(format!("call {}: {error}", raw.id));
        let retry = raw.retry.as_deref().map(serde_json::from_str).transpose().map_err(|e| bad(e.to_string()))?;
        Ok(Self {
            id: CallId(raw.id),
            state: raw.state.parse().map_err(bad)?,
            attempt: uint(raw.attempt),
            tool: raw.tool,
            pool: raw.pool,
            effect: raw.effect.parse().map_err(bad)?,
            retry: retry.unwrap_or_default(),
            timeout_ms: u64::try_from(raw.timeout_ms).unwrap_or(1),
            traceparent: raw.traceparent,
            deadline_at: raw.deadline_at,
            worker: raw.worker.map(|worker| worker.parse()).transpose().map_err(bad)?,
            claim: raw.claim_id.map(ClaimId),
            lease_until: raw.lease_until,
            cancel_requested: raw.cancel_requested,
            publish_no: uint(raw.publish_no),
            published_at: raw.published_at,
            origin: raw.origin_id.map(CallId),
            read_at: raw.read_at,
        })
    }
}

impl Store {
    /// The calls with these ids, as far as they exist.
    pub async fn load(&self, ids: &[CallId]) -> Result<Vec<CallRecord>, StoreError> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let rows = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let rows = sqlx::query_file_as!(RawCall, "sql/load.sql", &ids).fetch_all(&mut *db).await?;
                Ok(db.done(rows))
            })
            .await?;
        rows.into_iter().map(CallRecord::try_from).collect()
    }

    /// What these calls were asked to do, as far as they exist.
    pub async fn contents(&self, ids: &[CallId]) -> Result<HashMap<CallId, CallContent>, StoreError> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let rows = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let rows = sqlx::query!(
                    r#"SELECT id, tenant, conversation, arguments::text AS "arguments!" FROM calls WHERE id = ANY($1)"#,
                    &ids,
                )
                .fetch_all(&mut *db)
                .await?;
                Ok(db.done(rows))
            })
            .await?;
        let contents = rows.into_iter().map(|row| {
            let content = CallContent { tenant: row.tenant, conversation: row.conversation, arguments: row.arguments };
            (CallId(row.id), content)
        });
        Ok(contents.collect())
    }
}
