//! Numbers of calls, claims and processes, and the ids that the engine knows them by.

use redial_proto::{CallId, ClaimId, WorkerId};
use uuid::Uuid;

/// A worker process, or a dispatcher process: a new one gets a new number. 0 is none.
pub(crate) type Process = u16;

/// A request of a worker for attempts. 0 is none.
pub(crate) type Claim = u32;

/// A call, by its position in the table.
pub(crate) type CallNo = u8;

pub(crate) fn call_id(call: CallNo) -> CallId {
    CallId(Uuid::from_u128(u128::from(call)))
}

pub(crate) const fn call_no(id: CallId) -> CallNo {
    id.0.as_u128() as CallNo
}

pub(crate) fn claim_id(claim: Claim) -> ClaimId {
    ClaimId(Uuid::from_u128(u128::from(claim)))
}

#[expect(clippy::expect_used, reason = "a number is a valid id")]
pub(crate) fn worker_id(process: Process) -> WorkerId {
    process.to_string().parse().expect("digits are allowed")
}

/// The process of a worker's id; 0 if it is none of this world.
pub(crate) fn process_of(worker: &WorkerId) -> Process {
    worker.as_str().parse().unwrap_or(0)
}
