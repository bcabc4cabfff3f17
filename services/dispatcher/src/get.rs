//! Tells a user where a call stands.

use std::sync::Arc;

use redial_proto::{ApiError, CallId, CallView, Code, GetRequest};
use redial_store::{StoreError, audit::CallRecord};

use crate::{error::store_failed, shared::Shared};

pub(crate) async fn get(shared: Arc<Shared>, request: GetRequest) -> Result<CallView, ApiError> {
    let record = shared.store.record(request.call).await.map_err(|error| store_failed(&error))?;
    let record = record.ok_or_else(|| not_found(request.call))?;
    view(request.call, record).map_err(|error| store_failed(&error))
}

pub(crate) fn not_found(call: CallId) -> ApiError {
    ApiError::new(Code::CallNotFound, format!("no call {call} is on record"))
}

fn view(call: CallId, record: CallRecord) -> Result<CallView, StoreError> {
    let line = record.line;
    let last = record.attempts_made.into_iter().rev().find(|attempt| attempt.ended_at.is_some());
    let (last_class, last_message, output) =
        last.map_or((None, None, None), |last| (last.class, last.message, last.output));
    let class = line.class.or(last_class).map(|class| class.parse()).transpose().map_err(StoreError::BadData)?;
    Ok(CallView {
        call,
        tool: line.tool,
        state: line.state.parse().map_err(StoreError::BadData)?,
        attempts: u32::try_from(line.attempts).unwrap_or(0),
        submitted_at: line.submitted_at,
        next_attempt_at: line.next_attempt_at,
        finished_at: line.finished_at,
        output,
        class,
        message: line.message.or(last_message),
    })
}
