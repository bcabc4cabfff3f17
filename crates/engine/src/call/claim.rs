//! What the store's guarded statements for claims and heartbeats decide.
//!
//! Each of these stays one statement in SQL. These predicates say the same in Rust: the simulation runs on them, and
//! a test of the store proves on random rows that both agree.

use redial_proto::{CallState, GrantRef, WorkerId};
use redial_records::{CallRecord, Claim, Time};

/// Decides whether the attempt is granted.
///
/// A claim that was granted is granted again when it is sent again, with a fresh lease, also after its time. A claim
/// that was released is on record in a call that is ready, and is never granted: a late copy of it would start an
/// attempt that no worker runs.
pub fn grants(call: &CallRecord, claim: &Claim, now: Time) -> bool {
    let same_claim = call.claim == Some(claim.claim);
    if call.tool != claim.tool {
        return false;
    }
    match call.state {
        CallState::Ready => {
            let in_time = now < call.deadline_at && now <= claim.not_after;
            call.attempt + 1 == claim.job.attempt && in_time && !same_claim
        }
        CallState::Running => {
            call.attempt == claim.job.attempt && same_claim && call.worker.as_ref() == Some(&claim.worker)
        }
        _ => false,
    }
}

/// True if a worker's heartbeat extends the lease of a grant.
pub fn renews(call: &CallRecord, worker: &WorkerId, grant: GrantRef) -> bool {
    call.state == CallState::Running && call.grant() == Some(grant) && call.worker.as_ref() == Some(worker)
}

/// True if a grant of which the record knows nothing is taken back, because its commit was lost with a primary, and its
/// worker holds it all the same. `held_at`: it did so then, if not later; `None` if that is not known.
///
/// A grant that was released is on record in its call until another one takes its place. It was held before that one
/// began, so what is said of it later than that is not about a released grant.
pub fn takes_back(call: &CallRecord, grant: GrantRef, held_at: Option<Time>) -> bool {
    let is_next =
        call.state == CallState::Ready && call.attempt + 1 == grant.attempt && call.claim != Some(grant.claim);
    is_next && call.started_at.is_none_or(|last| held_at.is_some_and(|held| held > last))
}
