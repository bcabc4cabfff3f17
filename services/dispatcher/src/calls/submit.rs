//! Submits calls by request and reply. The reply follows the commit.

use std::{sync::Arc, time::Instant};

use redial_engine::accept::accept;
use redial_proto::{
    ApiError, CallId, Caller, Submission, SubmitBatchReply, SubmitResult,
    subjects::{self, Verb},
};
use redial_queue::{QueueError, Request};
use redial_records::NewCall;
use redial_telemetry::submit_call;

use super::message::{Message, is_costly};
use crate::{
    aside::aside,
    asked::{Sent, caller},
    batcher::{BatchWork, Batching},
    context::Context,
    error::store_failed,
    fair_queue::FairQueue,
    new_calls, policies,
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
    let context = running.context.clone();
    let waiting = Submitter { context: context.clone(), unknown: None, costly: None };
    let unknown = serve::start_batcher(
        running,
        Batching { name: "submit calls of unknown tools", workers: 1, batch: 64 },
        &waiting,
    );
    let costly =
        serve::start_batcher(running, Batching { name: "submit costly calls", workers: 2, batch: 8 }, &waiting);
    let submitter = Submitter { context, unknown: Some(unknown), costly: Some(costly) };
    let requests = serve::start_batcher(running, Batching { name: "submit calls", workers: 3, batch: 64 }, &submitter);
    let verb = Verb::CallSubmit;
    serve::feed(running, verb.name(), &subjects::api_of_all(verb), requests).await
}

/// Submissions of unknown tools wait until the registry is read again, and the arguments of some are checked for up to a
/// second: both go to a batcher of their own, so that all others are written meanwhile.
#[derive(Clone)]
struct Submitter {
    context: Arc<Context>,
    unknown: Option<Arc<FairQueue<Request>>>,
    costly: Option<Arc<FairQueue<Request>>>,
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
        let names_unknown = |message: &Sent<Message>| message.as_ref().is_ok_and(|(_, one)| one.names_unknown(&tools));
        let batch = match &self.unknown {
            Some(unknown) => serve::hand_over(batch, unknown, names_unknown).await,
            None => batch,
        };
        let is_costly = |message: &Sent<Message>| message.as_ref().is_ok_and(|(_, one)| one.is_costly(&tools));
        let batch = match &self.costly {
            Some(costly) => serve::hand_over(batch, costly, is_costly).await,
            None => batch,
        };
        self.submit(batch).await;
    }
}

impl Submitter {
    async fn submit(&self, batch: Vec<(Request, Sent<Message>)>) {
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
    let access = context.access.at(Instant::now()).await;
    let take = |Incoming { submission, traceparent }: Incoming| {
        let (caller, submission) = submission?;
        if !tools.contains_key(&submission.tool) {
            refreshed.clone()?;
        }
        policies::check_user(&access, &caller)?;
        let policy = policies::of(&access, &caller.tenant)?;
        policies::check_call(policy, &submission, &tools)?;
        let visible;
        let tools = if tools.contains_key(&submission.tool) {
            &*tools
        } else {
            // The error suggests similar names.
            visible = policies::visible(policy, &tools);
            &visible
        };
        let (_span, traceparent) = submit_call(&submission.tool, traceparent);
        let is_costly = is_costly(&submission, tools);
        let accept = || accept(submission, &caller, tools, CallId::generate(), traceparent);
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
    let outcomes = new_calls::write(context, &calls).await;
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
