//! Extends leases.

use std::collections::HashSet;

use redial_proto::{CallId, ClaimId, GrantRef, WorkerId};
use uuid::Uuid;

use crate::{
    StoreError,
    columns::{bigint, int, uint},
    connect::Store,
};

/// A grant that its worker still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The grant.
    pub grant: GrantRef,
    /// Its lease was extended. If not, its call is locked, and the lease stays as it is.
    pub renewed: bool,
    /// The call's user wants it stopped.
    pub cancelled: bool,
}

impl Store {
    /// Extends the leases of the grants that this worker still holds, as far as their calls are not locked, and returns all that it
    /// holds.
    pub async fn renew(&self, worker: &WorkerId, running: &[GrantRef], lease_ms: u64) -> Result<Vec<Held>, StoreError> {
        let mut sorted = running.to_vec();
        sorted.sort_unstable();
        let (ids, attempts, claims) = columns(&sorted);
        let rows = on_connection!(self, |db| {
            let renewed =
                sqlx::query_file!("sql/renew.sql", &ids, &attempts, &claims, worker.as_str(), bigint(lease_ms));
            renewed.fetch_all(db).await
        })?;
        let held = |id, attempt, claim| GrantRef { call: CallId(id), attempt: uint(attempt), claim: ClaimId(claim) };
        let mut all: Vec<Held> = rows
            .into_iter()
            .map(|row| Held {
                grant: held(row.id, row.attempt, row.claim_id),
                renewed: true,
                cancelled: row.cancel_requested,
            })
            .collect();
        let renewed: HashSet<GrantRef> = all.iter().map(|held| held.grant).collect();
        sorted.retain(|grant| !renewed.contains(grant));
        if sorted.is_empty() {
            return Ok(all);
        }
        // Lost, as a rule.
        let (ids, attempts, claims) = columns(&sorted);
        let rows = on_connection!(self, |db| {
            let held = sqlx::query_file!("sql/held_grants.sql", &ids, &attempts, &claims, worker.as_str());
            held.fetch_all(db).await
        })?;
        all.extend(rows.into_iter().map(|row| Held {
            grant: held(row.id, row.attempt, row.claim_id),
            renewed: false,
            cancelled: row.cancel_requested,
        }));
        Ok(all)
    }
}

fn columns(grants: &[GrantRef]) -> (Vec<Uuid>, Vec<i32>, Vec<Uuid>) {
    (
        grants.iter().map(|grant| grant.call.0).collect(),
        grants.iter().map(|grant| int(grant.attempt)).collect(),
        grants.iter().map(|grant| grant.claim.0).collect(),
    )
}
