//! Grants attempts.

use redial_proto::{CallId, ClaimId, JobRef, TaskId, ToolEffect, limits};
use redial_records::{Claim, Time};
use uuid::Uuid;

use crate::{
    StoreError,
    columns::{bigint, int, uint},
    connect::Store,
};

#[derive(Clone, Debug)]
pub struct Granted {
    pub job: JobRef,
    /// The request that asked for it.
    pub claim: ClaimId,
    pub tool: String,
    /// A JSON object; `None` if it has more than [`limits::MAX_INLINE`] bytes.
    pub arguments: Option<String>,
    /// As it is pinned in the call.
    pub effect: ToolEffect,
    pub tenant: String,
    pub conversation: Option<String>,
    /// W3C trace context of the submission.
    pub traceparent: Option<String>,
    /// The task that asked for it; `None` for a bare call.
    pub task: Option<TaskId>,
    /// The first call of a chain of redrives, or the call itself: stable over all attempts.
    pub origin: CallId,
    /// How long the attempt may take, in ms, within the call's total deadline.
    pub timeout_ms: u64,
    /// How long ago the call was submitted, or its retry due, in ms: how long it was ready, unless its worker released it or
    /// asks again.
    pub ready_ms: u64,
    /// To which consumer the job was published, and when; `None` if it was published more than once for this attempt.
    pub published: Option<(String, Time)>,
    /// The version of the tool that the arguments were accepted for; `None` if they have no schema.
    pub tool_version: Option<Uuid>,
}

/// [`limits::MAX_INLINE`].
const MAX_INLINE: i32 = 256 * 1024;
const _: () = assert!(MAX_INLINE as usize == limits::MAX_INLINE, "they are one limit");

impl Store {
    /// Grants what may run now, in one statement; what is not in the answer may not. Leases run for `lease_ms`. The times of the claims
    /// must be in the [`limits::YEARS`]. Calls that stay locked delay no others, and are not granted.
    pub async fn claim(&self, claims: &[Claim], lease_ms: u64) -> Result<Vec<Granted>, StoreError> {
        let calls: Vec<CallId> = claims.iter().map(|claim| claim.job.call).collect();
        let mut locked = self.avoided(&calls).await?;
        loop {
            let free: Vec<&Claim> = claims.iter().filter(|claim| !locked.contains(&claim.job.call)).collect();
            match self.claim_all(free, lease_ms).await {
                Err(error) if error.is_lock_timeout() && self.adds_locked(&calls, &mut locked).await? => {}
                done => return done,
            }
        }
    }

    async fn claim_all(&self, mut sorted: Vec<&Claim>, lease_ms: u64) -> Result<Vec<Granted>, StoreError> {
        // Every statement locks calls in the order of their ids, which keeps deadlocks rare.
        sorted.sort_unstable_by_key(|claim| claim.job.call);
        let ids: Vec<Uuid> = sorted.iter().map(|c| c.job.call.0).collect();
        let attempts: Vec<i32> = sorted.iter().map(|c| int(c.job.attempt)).collect();
        let claim_ids: Vec<Uuid> = sorted.iter().map(|c| c.claim.0).collect();
        let workers: Vec<&str> = sorted.iter().map(|c| c.worker.as_str()).collect();
        let tools: Vec<&str> = sorted.iter().map(|c| c.tool.as_str()).collect();
        let not_after: Vec<Time> = sorted.iter().map(|c| c.not_after).collect();
        let lease_ms = bigint(lease_ms);
        let may_pass = |error: &StoreError| error.is_transient() && !error.is_timeout();
        let rows = self.run_again_if(may_pass, || async {
            let mut db = self.checkout().await?;
            let granted = sqlx::query_file!(
                "sql/claim.sql",
                &ids,
                &attempts,
                &claim_ids,
                &workers as &[&str],
                lease_ms,
                &tools as &[&str],
                MAX_INLINE,
                &not_after,
            )
            .fetch_all(&mut *db)
            .await?;
            Ok(db.done(granted))
        });
        let rows = rows.await?;
        // An unreadable row must not keep the others from their workers.
        let granted = rows.into_iter().filter_map(|row| {
            let unreadable = |reason: &String| tracing::error!(call = %row.id, reason, "Left out an unreadable grant");
            let effect = row.effect.parse().inspect_err(unreadable).ok()?;
            Some(Granted {
                job: JobRef { call: CallId(row.id), attempt: uint(row.attempt) },
                claim: ClaimId(row.claim_id),
                tool: row.tool,
                arguments: row.arguments,
                effect,
                tenant: row.tenant,
                conversation: row.conversation,
                traceparent: row.traceparent,
                task: row.task_id.map(TaskId),
                origin: CallId(row.origin_id),
                timeout_ms: u64::try_from(row.timeout_ms).unwrap_or(1),
                ready_ms: u64::try_from(row.ready_ms).unwrap_or(0),
                published: row.consumer.zip(row.published_at),
                tool_version: row.tool_version,
            })
        });
        Ok(granted.collect())
    }
}
