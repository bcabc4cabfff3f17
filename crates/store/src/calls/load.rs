//! Reads what decisions are made from.

use std::collections::HashMap;

use redial_proto::{CallId, CallState, ClaimId, RetryOverride, ToolEffect, tolerant};
use redial_records::{Backlog, CallContent, CallRecord, Time};
use uuid::Uuid;

use crate::{
    StoreError,
    columns::{distinct, uint},
    connect::Store,
};

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
    pub(super) published_at: Option<Time>,
    pub(super) consumer: Option<String>,
    pub(super) waits: bool,
    pub(super) backlog_retry: bool,
    pub(super) started_at: Option<Time>,
    pub(super) origin_id: Option<Uuid>,
    pub(super) read_at: Time,
}

/// Reads a row. One that this version cannot read is in state [`CallState::Other`], in which nothing is decided about
/// it: a newer version wrote it, or somebody changed it by hand.
impl From<RawCall> for CallRecord {
    fn from(raw: RawCall) -> Self {
        let read = || -> Result<_, String> {
            let retry = raw.retry.as_deref().map(tolerant::from_str).transpose().map_err(|error| error.to_string())?;
            let worker = raw.worker.as_deref().map(str::parse).transpose()?;
            Ok((raw.state.parse()?, raw.effect.parse()?, retry.unwrap_or_default(), worker))
        };
        let (state, effect, retry, worker) = read().unwrap_or_else(|reason| {
            tracing::debug!(call = %raw.id, reason, "Found a call that cannot be read");
            (CallState::Other, ToolEffect::Unsafe, RetryOverride::default(), None)
        });
        Self {
            id: CallId(raw.id),
            state,
            attempt: uint(raw.attempt),
            tool: raw.tool,
            pool: raw.pool,
            effect,
            retry,
            timeout_ms: u64::try_from(raw.timeout_ms).unwrap_or(1),
            traceparent: raw.traceparent,
            deadline_at: raw.deadline_at,
            worker,
            claim: raw.claim_id.map(ClaimId),
            lease_until: raw.lease_until,
            cancel_requested: raw.cancel_requested,
            publish_no: uint(raw.publish_no),
            published_at: raw.published_at,
            consumer: raw.consumer,
            backlog: raw.waits.then_some(if raw.backlog_retry { Backlog::Retry } else { Backlog::Job }),
            started_at: raw.started_at,
            origin: raw.origin_id.map(CallId),
            read_at: raw.read_at,
        }
    }
}

impl Store {
    /// Loads the calls with these ids, as far as they exist.
    pub async fn load(&self, ids: &[CallId]) -> Result<Vec<CallRecord>, StoreError> {
        let ids = distinct(ids);
        let rows = on_connection!(self, |db| sqlx::query_file_as!(RawCall, "sql/load.sql", &ids).fetch_all(db).await)?;
        Ok(rows.into_iter().map(CallRecord::from).collect())
    }

    /// Loads what these calls were asked to do, as far as they exist.
    pub(crate) async fn contents(&self, ids: &[CallId]) -> Result<HashMap<CallId, CallContent>, StoreError> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let rows = on_connection!(self, |db| {
            sqlx::query!(
                r#"SELECT id, tenant, conversation, arguments::text AS "arguments!", tool_version FROM calls WHERE id = ANY($1)"#,
                &ids,
            )
            .fetch_all(db)
            .await
        })?;
        let contents = rows.into_iter().map(|row| {
            let (tenant, conversation) = (row.tenant, row.conversation);
            let content =
                CallContent { tenant, conversation, arguments: row.arguments, tool_version: row.tool_version };
            (CallId(row.id), content)
        });
        Ok(contents.collect())
    }
}
