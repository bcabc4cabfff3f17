//! Numbers of calls, claims, processes, tools and consumers, and the ids and names by which the engine knows them.

use redial_proto::{CallId, ClaimId, TaskId, WorkerId};
use uuid::Uuid;

/// A worker or dispatcher process: each new one has a new number. 0 means none.
pub(crate) type Process = u16;

/// A worker's request for attempts. 0 means none.
pub(crate) type Claim = u32;

/// A call's position in the table.
pub(crate) type CallNo = u8;

/// The tools, as dispatchers and workers know them. The calls of tasks are spread over them, whatever their agents call
/// their tools: which worker runs them is no concern of a task.
pub(crate) const TOOLS: [&str; 2] = ["a", "b"];

/// Whose calls all of them are.
pub(crate) const TENANT: &str = "acme";

/// A position in [`TOOLS`].
pub(crate) type ToolNo = u8;

/// Tools, as bits.
pub(crate) type ToolSet = u8;

/// A consumer's position in the table.
pub(crate) type ConsumerNo = u8;

pub(crate) const ALL_TOOLS: ToolSet = (1 << TOOLS.len()) - 1;

pub(crate) const fn has_tool(set: ToolSet, tool: ToolNo) -> bool {
    set >> tool & 1 == 1
}

pub(crate) fn tool_no(name: &str) -> ToolNo {
    TOOLS.iter().position(|known| *known == name).unwrap_or(0) as ToolNo
}

pub(crate) fn consumer_name(consumer: ConsumerNo) -> String {
    consumer.to_string()
}

pub(crate) fn consumer_no(name: &str) -> ConsumerNo {
    name.parse().unwrap_or(0)
}

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
