//! What the store's guarded statements for claims and heartbeats decide.
//!
//! Each of the two stays one statement in SQL. These predicates say the same in Rust: the simulation runs on them, and
//! a test of the store proves on random rows that both agree.

use redial_proto::{CallState, GrantRef, WorkerId};
use redial_records::{CallRecord, Claim, Time};

/// Whether the attempt is granted.
///
/// A claim that was granted is granted again when it is sent again, with a fresh lease, also after its time. A claim that was
/// released is on record in a call that is ready, and is never granted: a late copy of it would start an attempt that no worker runs.
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

/// Whether a worker's heartbeat extends the lease of a grant.
pub fn renews(call: &CallRecord, worker: &WorkerId, grant: GrantRef) -> bool {
    call.state == CallState::Running && call.grant() == Some(grant) && call.worker.as_ref() == Some(worker)
}
