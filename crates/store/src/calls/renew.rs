//! Extends leases.

use std::collections::HashSet;

use redial_proto::{CallId, ClaimId, GrantRef, WorkerId};
use redial_records::Time;
use uuid::Uuid;

use super::take_back::{HeldGrant, LostGrant};
use crate::{
    StoreError,
    columns::{bigint, int, uint},
    connect::Store,
};

/// A grant that its worker still holds, or that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub grant: GrantRef,
    /// Its lease was extended. If not, its call is locked, or its worker must register first, and the lease stays as it is.
    pub renewed: bool,
    /// The call's user wants it stopped.
    pub cancelled: bool,
}

impl Store {
    /// Extends the leases of the grants that this worker still holds, and takes back those that were lost, as far as their calls are not
    /// locked; returns all that it holds, and those that it may hold once it is registered. `held_at`: it says that it held all of them
    /// then, if not later.
    pub async fn renew(
        &self,
        worker: &WorkerId,
        running: &[GrantRef],
        held_at: Option<Time>,
        lease_ms: u64,
    ) -> Result<Vec<Held>, StoreError> {
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
        keep_others(&mut sorted, &all);
        if sorted.is_empty() {
            return Ok(all);
        }
        // The worker has lost these, as a rule.
        let unknown: Vec<HeldGrant<'_>> =
            sorted.iter().map(|grant| HeldGrant { worker, grant: *grant, held_at }).collect();
        let lost = self.take_back(&unknown, lease_ms).await?;
        let is_held = |lost: &LostGrant| !lost.is_refused;
        let not_lost = |lost: LostGrant| Held { grant: lost.grant, renewed: lost.is_taken, cancelled: false };
        all.extend(lost.into_iter().filter(is_held).map(not_lost));
        keep_others(&mut sorted, &all);
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

/// Keeps only those of which nothing is known yet.
fn keep_others(grants: &mut Vec<GrantRef>, known: &[Held]) {
    let known: HashSet<GrantRef> = known.iter().map(|held| held.grant).collect();
    grants.retain(|grant| !known.contains(grant));
}

fn columns(grants: &[GrantRef]) -> (Vec<Uuid>, Vec<i32>, Vec<Uuid>) {
    (
        grants.iter().map(|grant| grant.call.0).collect(),
        grants.iter().map(|grant| int(grant.attempt)).collect(),
        grants.iter().map(|grant| grant.claim.0).collect(),
    )
}
