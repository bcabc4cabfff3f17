//! Running an ended call again, as a new call.

use redial_proto::{CallId, CallState, RetryPolicy};
use redial_records::{CallContent, CallRecord, NewCall, Redrive};

/// Whether an ended call may run again; if not, why.
pub fn may_redrive(state: CallState) -> Result<(), String> {
    match state {
        CallState::Failed | CallState::Cancelled | CallState::Unknown => Ok(()),
        CallState::Ready | CallState::Running | CallState::RetryWait | CallState::ClientWait => {
            Err(format!("the call is {state}; only ended calls can be redriven, cancel it first"))
        }
        CallState::Succeeded => Err("the call succeeded; submit it again if you want it twice".to_owned()),
        CallState::Refused => Err("the call was refused and would be again; submit it corrected".to_owned()),
    }
}

/// Whether an ended call may run again with other arguments; if not, why. One that was refused never ran: other arguments are
/// what it needs.
pub fn may_redrive_edited(state: CallState) -> Result<(), String> {
    if state == CallState::Refused { Ok(()) } else { may_redrive(state) }
}

/// The same call under a new id. The key stays with the old one; what tools see as idempotency key stays the same.
/// `policy` is the retry policy of its tool.
pub fn redriven(call: &CallRecord, content: CallContent, policy: &RetryPolicy, id: CallId) -> NewCall {
    NewCall {
        submitted_by: None,
        id,
        tool: call.tool.clone(),
        pool: call.pool.clone(),
        effect: call.effect,
        tenant: content.tenant,
        key: None,
        content: None,
        conversation: content.conversation,
        timeout_ms: call.timeout_ms,
        retry: Some(call.retry),
        notify: false,
        traceparent: call.traceparent.clone(),
        deadline_ms: policy.with(&call.retry).deadline_ms,
        arguments: content.arguments,
        repairs: Vec::new(),
        undeclared: Vec::new(),
        help: None,
        refusal: None,
        task: None,
        consumer: None,
        redrive_of: Some(Redrive { call: call.id, origin: call.origin.unwrap_or(call.id) }),
    }
}
