//! Answers what is on record of a call.

use std::sync::Arc;

use redial_proto::{ApiError, CallId, CallView, GetRequest};
use redial_store::{StoreError, audit::CallAudit};

use crate::{
    context::Context,
    error::{call_not_found, store_failed},
};

pub(crate) async fn get(context: Arc<Context>, request: GetRequest) -> Result<CallView, ApiError> {
    let record = context.store.record(request.call).await.map_err(|error| store_failed(&error))?;
    let record = record.ok_or_else(|| call_not_found(request.call))?;
    view(request.call, record).map_err(|error| store_failed(&error))
}

fn view(call: CallId, record: CallAudit) -> Result<CallView, StoreError> {
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
        waits: record.waits,
        finished_at: line.finished_at,
        output,
        class,
        message: line.message.or(last_message),
    })
}
