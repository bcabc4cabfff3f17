//! Numbers of calls, claims and processes, and the ids by which the engine knows them.

use redial_proto::{CallId, ClaimId, TaskId, WorkerId};
use uuid::Uuid;

/// A worker or dispatcher process: each new one has a new number. 0 means none.
pub(crate) type Process = u16;

/// A worker's request for attempts. 0 means none.
pub(crate) type Claim = u32;

/// A call's position in the table.
pub(crate) type CallNo = u8;

pub(crate) fn call_id(call: CallNo) -> CallId {
    CallId(Uuid::from_u128(u128::from(call)))
}

pub(crate) const fn call_no(id: CallId) -> CallNo {
    id.0.as_u128() as CallNo
}

pub(crate) fn task_id(task: u8) -> TaskId {
    TaskId(Uuid::from_u128(u128::from(task)))
}

pub(crate) const fn task_no(id: TaskId) -> u8 {
    id.0.as_u128() as u8
}

pub(crate) fn claim_id(claim: Claim) -> ClaimId {
    ClaimId(Uuid::from_u128(u128::from(claim)))
}

#[expect(clippy::expect_used, reason = "a number is a valid id")]
pub(crate) fn worker_id(process: Process) -> WorkerId {
    process.to_string().parse().expect("digits are allowed")
}

/// The process of a worker's id; 0 if the id is not a number.
pub(crate) fn process_of(worker: &WorkerId) -> Process {
    worker.as_str().parse().unwrap_or(0)
}
