//! Submits calls by request and reply. The reply follows the commit.

use std::sync::Arc;

use redial_engine::{accept::accept, call, publish::FIRST_CHECK_MS};
use redial_proto::{
    ApiError, CallId, Code, ErrorClass, Failure, Submission, SubmitBatchReply, SubmitResult, SubmitStatus, limits,
    subjects,
};
use redial_queue::{QueueError, Request};
use redial_records::NewCall;
use redial_store::Submitted;
use redial_telemetry::{metrics, names, submit_call};

use super::message::Message;
use crate::{
    batcher::{self, BatchWork, Batching},
    context::Context,
    effects,
    error::store_failed,
    running::Running,
    serve,
};

/// A submission, or why it cannot be read, with the trace context it came with.
pub(crate) type Incoming = (Result<Submission, ApiError>, Option<String>);

pub(crate) async fn start(running: &Running) -> Result<(), QueueError> {
    let requests =
        batcher::start(Batching { workers: 3, batch: 64 }, &running.tracker, &Submitter(running.context.clone()));
    serve::feed(running, subjects::SUBMIT, requests).await
}

#[derive(Clone)]
struct Submitter(Arc<Context>);

impl BatchWork<Request> for Submitter {
    async fn work(&self, batch: Vec<Request>) {
        let mut incoming = Vec::new();
        let mut answers = Vec::with_capacity(batch.len());
        for request in &batch {
            let shape = Message::read(&request.payload).map(|message| {
                let (submissions, many) = message.into_submissions();
                let count = submissions.len();
                incoming.extend(submissions.into_iter().map(|one| (one, request.traceparent.clone())));
                (count, many)
            });
            answers.push(shape);
        }
        let mut results = submit(&self.0, incoming).await.into_iter();
        for (request, shape) in batch.iter().zip(answers) {
            match shape {
                Ok((_, false)) => {
                    if let Some(result) = results.next() {
                        request.reply(&result).await;
                    }
                }
                Ok((count, true)) => {
                    request.reply(&SubmitBatchReply { results: results.by_ref().take(count).collect() }).await;
                }
                Err(error) => request.reply(&SubmitResult::rejected(error)).await,
            }
        }
    }
}

/// Accepts submissions, writes them and publishes their jobs; returns the result of each, in order.
pub(crate) async fn submit(context: &Context, incoming: Vec<Incoming>) -> Vec<SubmitResult> {
    refresh_if_unknown(context, &incoming).await;
    let tools = context.registry.tools();
    let accepted: Vec<Result<NewCall, ApiError>> = incoming
        .into_iter()
        .map(|(submission, traceparent)| {
            let submission = submission?;
            let (_span, traceparent) = submit_call(&submission.tool, traceparent);
            accept(submission, &tools, CallId::generate(), traceparent)
        })
        .collect();
    let mut calls = Vec::with_capacity(accepted.len());
    let positions: Vec<Result<usize, ApiError>> = accepted
        .into_iter()
        .map(|call| {
            calls.push(call?);
            Ok(calls.len() - 1)
        })
        .collect();
    let outcomes = write(context, &calls).await;
    positions
        .into_iter()
        .map(|position| position.map_or_else(SubmitResult::rejected, |n| outcomes[n].clone()))
        .collect()
}

async fn refresh_if_unknown(context: &Context, incoming: &[Incoming]) {
    let tools = context.registry.tools();
    let unknown =
        incoming.iter().any(|(submission, _)| submission.as_ref().is_ok_and(|s| !tools.contains_key(&s.tool)));
    if unknown && let Err(error) = context.registry.refresh_throttled(&context.store).await {
        tracing::warn!(%error, "Failed to reload the registry");
    }
}

/// Writes calls, publishes their jobs, and returns the result of each, in order.
pub(crate) async fn write(context: &Context, calls: &[NewCall]) -> Vec<SubmitResult> {
    let mut results = Vec::with_capacity(calls.len());
    for calls in calls.chunks(limits::MAX_BATCH) {
        metrics().batch_size("submit", calls.len());
        match context.store.submit(calls, FIRST_CHECK_MS).await {
            Ok(written) => {
                for (call, written) in calls.iter().zip(written) {
                    if written == Submitted::Written {
                        effects::carry_out(context, call::submitted(call)).await;
                    }
                    let result = answer(call, &written);
                    metrics().calls_submitted(metric_tool(call), result.status.as_str(), 1);
                    results.push(result);
                }
            }
            Err(error) => {
                let rejected = SubmitResult::rejected(store_failed(&error));
                results.resize(results.len() + calls.len(), rejected);
            }
        }
    }
    results
}

/// Names of tools that are not registered would make a series each.
pub(crate) fn metric_tool(call: &NewCall) -> &str {
    match &call.refusal {
        Some(Failure { class: ErrorClass::UnknownTool, .. }) => names::OTHER_TOOL,
        _ => &call.tool,
    }
}

fn answer(call: &NewCall, written: &Submitted) -> SubmitResult {
    use redial_proto::CallState::{Ready, Refused};
    let (status, id, state, error) = match (written, &call.refusal) {
        (Submitted::Written, None) => (SubmitStatus::Accepted, call.id, Ready, None),
        (Submitted::Written, Some(refusal)) => (SubmitStatus::Refused, call.id, Refused, Some(refused(refusal))),
        (Submitted::Existing { id, state, content }, _) if *content == call.content => {
            (SubmitStatus::Existing, *id, *state, None)
        }
        (Submitted::Existing { id, .. }, _) => {
            let message = format!(
                "key {:?} was used before for other content, by call {id}; use another key for another call",
                call.key.as_deref().unwrap_or_default()
            );
            return SubmitResult::rejected(ApiError::new(Code::IdempotencyConflict, message));
        }
    };
    SubmitResult { status, call: Some(id), state: Some(state), error }
}

fn refused(refusal: &Failure) -> ApiError {
    let code = match refusal.class {
        ErrorClass::UnknownTool => Code::UnknownTool,
        _ => Code::InvalidArguments,
    };
    ApiError { code, message: refusal.message.clone(), details: refusal.details.clone() }
}
