//! Runs ended calls again, each as a new call that names the old one: history is kept.

use std::{collections::HashMap, sync::Arc};

use redial_proto::{ApiError, CallId, Code, RedriveReply, RedriveRequest, SubmitResult, limits, subjects};
use redial_queue::QueueError;
use redial_store::{CallRow, NewCall, audit::CallRecord};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{error::store_failed, get::not_found, serve, shared::Shared, submit};

pub(crate) async fn start(
    shared: &Arc<Shared>,
    tasks: &TaskTracker,
    shutdown: &CancellationToken,
) -> Result<(), QueueError> {
    let dispatcher = shared.clone();
    serve::each(&shared.queue, subjects::REDRIVE, tasks, shutdown, move |request| {
        let dispatcher = dispatcher.clone();
        async move { redrive(&dispatcher, &request).await }
    })
    .await
}

/// A call is redriven once: asking again gets the same new call. That one, when it has ended, can be redriven in turn.
async fn redrive(shared: &Shared, request: &RedriveRequest) -> Result<RedriveReply, ApiError> {
    if request.calls.len() > limits::MAX_BATCH {
        let message = format!("calls holds {} ids; allowed: {}", request.calls.len(), limits::MAX_BATCH);
        return Err(ApiError::new(Code::TooLarge, message));
    }
    let rows = shared.store.load(&request.calls).await.map_err(|error| store_failed(&error))?;
    let rows: HashMap<CallId, CallRow> = rows.into_iter().map(|row| (row.id, row)).collect();
    let mut results = Vec::with_capacity(request.calls.len());
    for &id in &request.calls {
        results.push(match again(shared, id, rows.get(&id)).await {
            Ok(call) => submit::write(shared, &[call]).await.remove(0),
            Err(error) => SubmitResult::rejected(error),
        });
    }
    Ok(RedriveReply { results })
}

async fn again(shared: &Shared, id: CallId, row: Option<&CallRow>) -> Result<NewCall, ApiError> {
    let row = row.ok_or_else(|| not_found(id))?;
    redial_engine::call::redrive(row.state).map_err(|why| ApiError::new(Code::WrongState, why))?;
    let record = shared.store.record(id).await.map_err(|error| store_failed(&error))?;
    Ok(new_call(shared, row, record.ok_or_else(|| not_found(id))?))
}

/// The same call under a new id. The key stays with the old one; what tools see as idempotency key stays the same.
fn new_call(shared: &Shared, row: &CallRow, record: CallRecord) -> NewCall {
    let policy = shared.registry.retry(&row.tool, &row.retry);
    NewCall {
        id: CallId::generate(),
        tool: row.tool.clone(),
        pool: row.pool.clone(),
        effect: row.effect,
        tenant: record.tenant,
        key: None,
        content: None,
        conversation: record.line.conversation,
        timeout_ms: row.timeout_ms,
        retry: serde_json::to_string(&row.retry).ok(),
        notify: false,
        traceparent: row.traceparent.clone(),
        deadline_ms: policy.deadline_ms,
        arguments: Box::<str>::from(record.arguments).into_string(),
        refusal: None,
        redrive_of: Some((row.id, row.origin.unwrap_or(row.id))),
    }
}
