//! Submits calls by request and reply. The reply follows the commit.

use std::sync::Arc;

use redial_engine::{accept::accept, call, feedback::CallFailure, publish::FIRST_CHECK_MS};
use redial_proto::{
    ApiError, CallId, Caller, Code, ErrorClass, Failure, Language, Submission, SubmitBatchReply, SubmitResult,
    SubmitStatus, limits,
    subjects::{self, Verb},
};
use redial_queue::{QueueError, Request};
use redial_records::NewCall;
use redial_store::Submitted;
use redial_telemetry::{metrics, names, submit_call};
use tokio::sync::mpsc;

use super::message::{Message, is_costly};
use crate::{
    aside::aside,
    asked::caller,
    batcher::{self, BatchWork, Batching},
    call_view::feedback,
    context::Context,
    effects,
    error::{store_failed, unreadable},
    running::Running,
    serve,
};

/// A submission, or why it cannot be read or may not be made.
pub(crate) struct Incoming {
    pub(crate) submission: Result<(Caller, Submission), ApiError>,
    /// W3C trace context it came with.
    pub(crate) traceparent: Option<String>,
}

impl Incoming {
    /// The submissions of one message, and whether it was a batch.
    pub(crate) fn of(message: Message, caller: &Caller, traceparent: Option<&str>) -> (Vec<Self>, bool) {
        let (submissions, many) = message.into_submissions();
        let one = |submission: Result<Submission, ApiError>| Self {
            submission: submission.map(|submission| (caller.clone(), submission)),
            traceparent: traceparent.map(str::to_owned),
        };
        (submissions.into_iter().map(one).collect(), many)
    }

    fn tool(&self) -> Option<&str> {
        self.submission.as_ref().ok().map(|(_, submission)| submission.tool.as_str())
    }
}

pub(crate) async fn start(running: &Running) -> Result<(), QueueError> {
    let (context, loops) = (running.context.clone(), &running.loops);
    let waiting = Submitter { context: context.clone(), unknown: None, costly: None };
    let unknown =
        batcher::start(Batching { name: "submit calls of unknown tools", workers: 1, batch: 64 }, loops, &waiting);
    let costly = batcher::start(Batching { name: "submit costly calls", workers: 2, batch: 8 }, loops, &waiting);
    let submitter = Submitter { context, unknown: Some(unknown), costly: Some(costly) };
    let requests = batcher::start(Batching { name: "submit calls", workers: 3, batch: 64 }, loops, &submitter);
    let verb = Verb::CallSubmit;
    serve::feed(running, verb.name(), &subjects::api_of_all(verb), requests).await
}

/// Submissions of unknown tools wait until the registry is read again, and the arguments of some are checked for up to a
/// second: both go to a batcher of their own, so that all others are written meanwhile.
#[derive(Clone)]
struct Submitter {
    context: Arc<Context>,
    unknown: Option<mpsc::Sender<Request>>,
    costly: Option<mpsc::Sender<Request>>,
}

impl BatchWork<Request> for Submitter {
    async fn work(&self, batch: Vec<Request>) {
        let read = |request: Request| {
            let message =
                caller(&request, Verb::CallSubmit).and_then(|caller| Ok((caller, Message::read(&request.payload)?)));
            (request, message)
        };
        let batch: Vec<_> = batch.into_iter().map(read).collect();
        let tools = self.context.registry.tools();
        let names_unknown =
            |message: &Result<(Caller, Message), _>| message.as_ref().is_ok_and(|(_, one)| one.names_unknown(&tools));
        let batch = match &self.unknown {
            Some(unknown) => serve::hand_over(batch, unknown, names_unknown).await,
            None => batch,
        };
        let is_costly =
            |message: &Result<(Caller, Message), _>| message.as_ref().is_ok_and(|(_, one)| one.is_costly(&tools));
        let batch = match &self.costly {
            Some(costly) => serve::hand_over(batch, costly, is_costly).await,
            None => batch,
        };
        self.submit(batch).await;
    }
}

impl Submitter {
    async fn submit(&self, batch: Vec<(Request, Result<(Caller, Message), ApiError>)>) {
        let mut incoming = Vec::new();
        let mut answers = Vec::with_capacity(batch.len());
        for (request, message) in batch {
            let shape = message.map(|(caller, message)| {
                let (submissions, many) = Incoming::of(message, &caller, request.traceparent.as_deref());
                let count = submissions.len();
                incoming.extend(submissions);
                (count, many)
            });
            answers.push((request, shape));
        }
        let mut results = submit(&self.context, incoming).await.into_iter();
        for (request, shape) in answers {
            match shape {
                Ok((_, false)) => {
                    if let Some(result) = results.next() {
                        request.reply(&result).await;
                    }
                }
                Ok((0, true)) => match self.context.store.now().await {
                    Ok(now) => request.reply(&SubmitBatchReply { results: Vec::new(), time: Some(now) }).await,
                    Err(error) => request.reply(&SubmitResult::rejected(store_failed(&error))).await,
                },
                Ok((count, true)) => {
                    let results = results.by_ref().take(count).collect();
                    request.reply(&SubmitBatchReply { results, time: None }).await;
                }
                Err(error) => request.reply(&SubmitResult::rejected(error)).await,
            }
        }
    }
}

/// Accepts submissions, writes them and publishes their jobs; returns the result of each, in order.
///
/// A call of an unknown tool is refused for good, so it is rejected instead while the registry cannot be read.
pub(crate) async fn submit(context: &Context, incoming: Vec<Incoming>) -> Vec<SubmitResult> {
    let refreshed = refresh_if_unknown(context, &incoming).await;
    let tools = context.registry.tools();
    let take = |Incoming { submission, traceparent }: Incoming| {
        let (caller, submission) = submission?;
        if !tools.contains_key(&submission.tool) {
            refreshed.clone()?;
        }
        let (_span, traceparent) = submit_call(&submission.tool, traceparent);
        let is_costly = is_costly(&submission, &tools);
        let accept = || accept(submission, &caller, &tools, CallId::generate(), traceparent);
        let mut call = if is_costly { aside(accept)? } else { accept()? };
        call.consumer = context.admit_new(&call);
        Ok(call)
    };
    let accepted: Vec<Result<NewCall, ApiError>> = incoming.into_iter().map(take).collect();
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

async fn refresh_if_unknown(context: &Context, incoming: &[Incoming]) -> Result<(), ApiError> {
    let tools = context.registry.tools();
    let unknown = incoming.iter().filter_map(Incoming::tool).any(|tool| !tools.contains_key(tool));
    if unknown { context.registry.refresh_throttled(&context.store).await } else { Ok(()) }
}

/// Writes calls, publishes their jobs, and returns the result of each, in order.
pub(crate) async fn write(context: &Context, calls: &[NewCall]) -> Vec<SubmitResult> {
    let mut results = Vec::with_capacity(calls.len());
    for calls in calls.chunks(limits::MAX_BATCH) {
        metrics().batch_size("submit", calls.len());
        match context.store.submit(calls, FIRST_CHECK_MS).await {
            Ok(written) => {
                for (call, written) in calls.iter().zip(written) {
                    if matches!(written, Submitted::Written) {
                        effects::carry_out(context, call::submitted(call)).await;
                    } else {
                        context.not_published([call].into_iter());
                    }
                    let result = answer(context, call, &written);
                    metrics().calls_submitted(metric_tool(call), result.status.as_str(), 1);
                    results.push(result);
                }
            }
            Err(error) => {
                context.not_published(calls.iter());
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

fn answer(context: &Context, call: &NewCall, written: &Submitted) -> SubmitResult {
    use redial_proto::CallState::{Ready, Refused};
    let (status, id, state, submitted_at, error) = match (written, &call.refusal) {
        (Submitted::Written, None) => (SubmitStatus::Accepted, call.id, Ready, None, None),
        (Submitted::Written, Some(refusal)) => (SubmitStatus::Refused, call.id, Refused, None, Some(refused(refusal))),
        (Submitted::Existing { id, state: Refused, submitted_at, .. }, Some(refusal)) => {
            (SubmitStatus::Refused, *id, Refused, Some(*submitted_at), Some(refused(refusal)))
        }
        (Submitted::Existing { id, state, content, submitted_at }, _) if *content == call.content => {
            (SubmitStatus::Existing, *id, *state, Some(*submitted_at), None)
        }
        (Submitted::Existing { id, .. }, _) => {
            let message = format!(
                "key {:?} was used before for other content, by call {id}; use another key for another call",
                call.key.as_deref().unwrap_or_default()
            );
            return SubmitResult::rejected(ApiError::new(Code::IdempotencyConflict, message));
        }
        (Submitted::Unreadable(call), _) => return SubmitResult::rejected(unreadable(call)),
    };
    let refusal = call.refusal.as_ref().filter(|_| status == SubmitStatus::Refused);
    let help = call.help.as_ref().map(|help| help.with_lists(call.repairs.clone(), call.undeclared.clone()));
    let feedback = refusal.map(|refusal| {
        let (sent, help) = (call.arguments.as_str(), help.as_ref());
        feedback(CallFailure { sent, help, ..CallFailure::new(&call.tool, refusal) }, Language::default())
    });
    let waits = status == SubmitStatus::Accepted && call.consumer.is_none();
    let waits_for = waits.then(|| context.feeder.wait_reason(&call.tool));
    SubmitResult { status, call: Some(id), state: Some(state), submitted_at, waits_for, error, feedback }
}

fn refused(refusal: &Failure) -> ApiError {
    let code = match refusal.class {
        ErrorClass::UnknownTool => Code::UnknownTool,
        ErrorClass::Configuration => Code::InvalidManifest,
        _ => Code::InvalidArguments,
    };
    ApiError { code, message: refusal.message.clone(), details: refusal.details.clone() }
}
