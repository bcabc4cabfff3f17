//! Takes back grants that a failover lost.

use redial_proto::{CallId, ClaimId, GrantRef, WorkerId};
use redial_records::Time;
use uuid::Uuid;

use crate::{
    StoreError,
    columns::{bigint, column, int, uint},
    connect::Store,
};

/// A grant that a worker holds, and that is perhaps not on record.
#[derive(Clone, Copy, Debug)]
pub struct HeldGrant<'a> {
    pub worker: &'a WorkerId,
    pub grant: GrantRef,
    /// The worker held it at this time, if not later.
    pub held_at: Option<Time>,
}

/// A grant that was lost: its call is ready for just this attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostGrant {
    pub grant: GrantRef,
    /// The worker may not serve the tool, or has not registered it.
    pub is_refused: bool,
    /// The call runs again. If not, and it is not refused, the call is locked, or the worker is not on record.
    pub is_taken: bool,
}

impl Store {
    /// Takes back those of these grants that were lost, as far as their workers may hold them and their calls are not locked; returns
    /// all that were lost. Their leases run for `lease_ms`.
    pub async fn take_back(&self, held: &[HeldGrant<'_>], lease_ms: u64) -> Result<Vec<LostGrant>, StoreError> {
        // Every statement locks calls in the order of their ids, which keeps deadlocks rare.
        let mut held = held.to_vec();
        held.sort_unstable_by_key(|held| held.grant);
        let ids: Vec<Uuid> = column(&held, |held| held.grant.call.0);
        let attempts = column(&held, |held| int(held.grant.attempt));
        let claims: Vec<Uuid> = column(&held, |held| held.grant.claim.0);
        let workers: Vec<&str> = column(&held, |held| held.worker.as_str());
        let identities: Vec<String> = column(&held, |held| held.worker.identity().to_string());
        let times: Vec<Option<Time>> = column(&held, |held| held.held_at);
        let rows = on_connection!(self, |db| {
            sqlx::query_file!(
                "sql/take_back.sql",
                &ids,
                &attempts,
                &claims,
                &workers as &[&str],
                &identities,
                &times as &[Option<Time>],
                bigint(lease_ms),
            )
            .fetch_all(db)
            .await
        })?;
        let lost = rows.into_iter().map(|row| LostGrant {
            grant: GrantRef { call: CallId(row.id), attempt: uint(row.attempt), claim: ClaimId(row.claim_id) },
            is_refused: row.is_refused,
            is_taken: row.is_taken,
        });
        let lost: Vec<LostGrant> = lost.collect();
        for LostGrant { grant, .. } in lost.iter().filter(|lost| lost.is_taken) {
            tracing::warn!(
                call = %grant.call,
                attempt = grant.attempt,
                "Took back a grant that the database had lost; when its attempt began is not on record"
            );
        }
        Ok(lost)
    }
}
