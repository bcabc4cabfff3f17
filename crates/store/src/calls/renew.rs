//! Extends leases.

use redial_proto::{CallId, ClaimId, GrantRef, WorkerId};
use uuid::Uuid;

use crate::{
    StoreError,
    columns::{bigint, int, uint},
    connect::Store,
};

impl Store {
    /// Extends the leases of the grants that this worker still holds, and returns those; the flag says that the call's user wants it
    /// stopped.
    pub async fn renew(
        &self,
        worker: &WorkerId,
        running: &[GrantRef],
        lease_ms: u64,
    ) -> Result<Vec<(GrantRef, bool)>, StoreError> {
        let mut sorted = running.to_vec();
        sorted.sort_unstable();
        let ids: Vec<Uuid> = sorted.iter().map(|grant| grant.call.0).collect();
        let attempts: Vec<i32> = sorted.iter().map(|grant| int(grant.attempt)).collect();
        let claims: Vec<Uuid> = sorted.iter().map(|grant| grant.claim.0).collect();
        let rows = on_connection!(self, |db| {
            let renewed =
                sqlx::query_file!("sql/renew.sql", &ids, &attempts, &claims, worker.as_str(), bigint(lease_ms));
            renewed.fetch_all(db).await
        })?;
        let held = |id, attempt, claim| GrantRef { call: CallId(id), attempt: uint(attempt), claim: ClaimId(claim) };
        Ok(rows.into_iter().map(|row| (held(row.id, row.attempt, row.claim_id), row.cancel_requested)).collect())
    }
}
