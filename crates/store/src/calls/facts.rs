//! What committed transitions left on record.

use redial_proto::{CallId, ClaimId, TaskId};
use redial_records::{CallFacts, Time};
use uuid::Uuid;

use crate::columns::uint;

/// What a statement that changes calls returns.
pub(super) struct RawFacts {
    pub(super) id: Uuid,
    pub(super) attempt: i32,
    pub(super) tool: String,
    pub(super) tenant: String,
    pub(super) traceparent: Option<String>,
    pub(super) notify: bool,
    pub(super) worker: Option<String>,
    pub(super) claim_id: Option<Uuid>,
    pub(super) submitted_at: Time,
    pub(super) at: Time,
    pub(super) notified_task: Option<Uuid>,
}

/// Reads what changes left on record. They are committed, so an unreadable value must not hide them: what follows from
/// it is left out instead.
pub(super) fn facts(rows: Vec<RawFacts>) -> Vec<CallFacts> {
    let facts = rows.into_iter().map(|row| {
        let call = CallId(row.id);
        let unreadable = |reason: &String| tracing::error!(%call, reason, "Ignored the unreadable worker of a call");
        CallFacts {
            call,
            attempt: uint(row.attempt),
            tool: row.tool,
            tenant: row.tenant,
            traceparent: row.traceparent,
            notify: row.notify,
            worker: row.worker.and_then(|worker| worker.parse().inspect_err(unreadable).ok()),
            claim: row.claim_id.map(ClaimId),
            submitted_at: row.submitted_at,
            at: row.at,
            task: row.notified_task.map(TaskId),
        }
    });
    facts.collect()
}
