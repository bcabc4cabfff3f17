//! Runs ended calls again, each as a new call that names the old one: history is kept.

use std::{collections::HashMap, sync::Arc};

use redial_engine::tools::retry_policy;
use redial_proto::{ApiError, CallId, Code, RedriveReply, RedriveRequest, SubmitResult, limits};
use redial_store::{CallRow, Content, NewCall};

use super::submit;
use crate::{
    context::Context,
    error::{call_not_found, store_failed},
};

/// A call is redriven once: asking again gets the same new call. That one, when it has ended, can be redriven in turn.
pub(crate) async fn redrive(context: Arc<Context>, request: RedriveRequest) -> Result<RedriveReply, ApiError> {
    if request.calls.len() > limits::MAX_BATCH {
        let message = format!("calls holds {} ids; allowed: {}", request.calls.len(), limits::MAX_BATCH);
        return Err(ApiError::new(Code::TooLarge, message));
    }
    let failed = |error| store_failed(&error);
    let rows = context.store.load(&request.calls).await.map_err(failed)?;
    let ended: Vec<CallId> = rows.iter().filter(|row| may_run_again(row).is_ok()).map(|row| row.id).collect();
    let contents = context.store.contents(&ended).await.map_err(failed)?;
    let rows: HashMap<CallId, CallRow> = rows.into_iter().map(|row| (row.id, row)).collect();
    let mut calls = Vec::new();
    let places: Vec<Result<usize, ApiError>> = request
        .calls
        .iter()
        .map(|&id| {
            let row = rows.get(&id).ok_or_else(|| call_not_found(id))?;
            may_run_again(row)?;
            calls.push(new_call(&context, row, contents.get(&id).cloned().ok_or_else(|| call_not_found(id))?));
            Ok(calls.len() - 1)
        })
        .collect();
    let outcomes = submit::write(&context, &calls).await;
    let result = |place: Result<usize, ApiError>| place.map_or_else(SubmitResult::rejected, |n| outcomes[n].clone());
    Ok(RedriveReply { results: places.into_iter().map(result).collect() })
}

fn may_run_again(row: &CallRow) -> Result<(), ApiError> {
    redial_engine::call::redrive(row.state).map_err(|why| ApiError::new(Code::WrongState, why))
}

/// The same call under a new id. The key stays with the old one; what tools see as idempotency key stays the same.
fn new_call(context: &Context, row: &CallRow, content: Content) -> NewCall {
    let policy = retry_policy(&context.registry.tools(), &row.tool, &row.retry);
    NewCall {
        id: CallId::generate(),
        tool: row.tool.clone(),
        pool: row.pool.clone(),
        effect: row.effect,
        tenant: content.tenant,
        key: None,
        content: None,
        conversation: content.conversation,
        timeout_ms: row.timeout_ms,
        retry: serde_json::to_string(&row.retry).ok(),
        notify: false,
        traceparent: row.traceparent.clone(),
        deadline_ms: policy.deadline_ms,
        arguments: content.arguments,
        repairs: None,
        refusal: None,
        task: None,
        redrive_of: Some((row.id, row.origin.unwrap_or(row.id))),
    }
}
