//! Reads what decisions are made from.

use std::collections::HashMap;

use redial_proto::{CallId, CallState, ClaimId, Effect, RetryOverride, WorkerId};
use uuid::Uuid;

use crate::{Store, StoreError, Time, uint};

/// The part of a call that decisions need; no payload.
#[derive(Clone, Debug)]
pub struct CallRow {
    /// The call.
    pub id: CallId,
    /// Where it stands.
    pub state: CallState,
    /// Attempts started so far.
    pub attempt: u32,
    /// The tool's name.
    pub tool: String,
    /// The tool's pool.
    pub pool: String,
    /// The pinned effect.
    pub effect: Effect,
    /// The call's own retry settings.
    pub retry: RetryOverride,
    /// How long an attempt may take, in ms.
    pub timeout_ms: u64,
    /// W3C trace context of the submission.
    pub traceparent: Option<String>,
    /// No attempt starts later.
    pub deadline_at: Time,
    /// Who runs it, or ran it last.
    pub worker: Option<WorkerId>,
    /// The claim of the current or last attempt.
    pub claim: Option<ClaimId>,
    /// The end of the current lease, while running.
    pub lease_until: Option<Time>,
    /// The user wants it stopped.
    pub cancel_requested: bool,
    /// How often its current attempt's job was published.
    pub publish_no: u32,
    /// When that was last.
    pub published_at: Time,
    /// The first call of a chain of redrives.
    pub origin: Option<CallId>,
    /// When this was read, by the database's clock.
    pub read_at: Time,
}

/// What a call was asked to do.
#[derive(Clone, Debug)]
pub struct Content {
    /// Scope of its key.
    pub tenant: String,
    /// The caller's conversation.
    pub conversation: Option<String>,
    /// Valid JSON.
    pub arguments: String,
}

/// What every query of this shape returns.
pub(crate) struct RawCall {
    pub(crate) id: Uuid,
    pub(crate) state: String,
    pub(crate) attempt: i32,
    pub(crate) tool: String,
    pub(crate) pool: String,
    pub(crate) effect: String,
    pub(crate) retry: Option<String>,
    pub(crate) timeout_ms: i64,
    pub(crate) traceparent: Option<String>,
    pub(crate) deadline_at: Time,
    pub(crate) worker: Option<String>,
    pub(crate) claim_id: Option<Uuid>,
    pub(crate) lease_until: Option<Time>,
    pub(crate) cancel_requested: bool,
    pub(crate) publish_no: i32,
    pub(crate) published_at: Time,
    pub(crate) origin_id: Option<Uuid>,
    pub(crate) read_at: Time,
}

impl TryFrom<RawCall> for CallRow {
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
    pub async fn load(&self, ids: &[CallId]) -> Result<Vec<CallRow>, StoreError> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let rows = self
            .run_again(|| async { let mut db = self.checkout().await?; let done = sqlx::query_as!(
                    RawCall,
                    r#"SELECT id, state, attempt, tool, pool, effect, retry::text, timeout_ms, traceparent, deadline_at, worker, claim_id, lease_until,
                              cancel_requested, publish_no, published_at, origin_id, clock_timestamp() AS "read_at!"
                       FROM calls WHERE id = ANY($1)"#,
                    &ids,
                ).fetch_all(&mut *db).await?; Ok(db.done(done)) })
            .await?;
        rows.into_iter().map(CallRow::try_from).collect()
    }

    /// What these calls were asked to do, as far as they exist.
    pub async fn contents(&self, ids: &[CallId]) -> Result<HashMap<CallId, Content>, StoreError> {
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
            let content = Content { tenant: row.tenant, conversation: row.conversation, arguments: row.arguments };
            (CallId(row.id), content)
        });
        Ok(contents.collect())
    }
}
