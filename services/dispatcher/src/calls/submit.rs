//! Submits calls by request and reply. The reply follows the commit.

use std::{cmp::Reverse, sync::Arc, time::Instant};

use redial_engine::accept::accept;
use redial_proto::{
    ApiError, CallId, Caller, Code, Submission, SubmitBatchReply, SubmitResult, limits::shorten, subjects::Verb,
};
use redial_queue::{QueueError, Request};
use redial_records::NewCall;
use redial_shares::FairQueue;
use redial_telemetry::submit_call;
use serde::{Deserialize, Serialize, de::IgnoredAny};

use super::message::{Message, is_costly};
use crate::{
    aside::aside,
    asked::{Sent, caller},
    batcher::{BatchWork, Batching},
    context::Context,
    error::store_failed,
    new_calls, policies,
    running::Running,
    serve::{self, Senders},
};

/// Bytes of the reply to a batch around its results.
const AROUND: usize = r#"{"results":[]}"#.len();
/// Bytes that are left of an error's message when nothing else can be left out. As JSON each may take six, and with the
/// other fields of a result that is still less than the thousandth part of a message.
const MESSAGE: usize = 100;

/// A submission, or why it cannot be read or may not be made.
pub(crate) struct Incoming {
    pub(crate) submission: Result<(Caller, Submission), ApiError>,
    pub(crate) traceparent: Option<String>,
}

impl Incoming {
    /// Returns the submissions of one message, and whether it was a batch.
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
    serve::feed(running, Senders::Users(Verb::CallSubmit), requests).await
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
                    if let Some(mut result) = results.next() {
                        fit(std::slice::from_mut(&mut result), |bytes| request.can_reply(bytes));
                        request.reply(&result).await;
                    }
                }
                Ok((0, true)) => match self.context.store.now().await {
                    Ok(now) => request.reply(&SubmitBatchReply { results: Vec::new(), time: Some(now) }).await,
                    Err(error) => request.reply_error(&store_failed(&error)).await,
                },
                Ok((count, true)) => {
                    let mut results: Vec<SubmitResult> = results.by_ref().take(count).collect();
                    fit(&mut results, |bytes| request.can_reply(bytes));
                    request.reply(&SubmitBatchReply { results, time: None }).await;
                }
                // The sender of a batch expects no result of a single call.
                Err(error) if is_batch(&request.payload) => request.reply_error(&error).await,
                Err(error) => request.reply(&SubmitResult::rejected(error)).await,
            }
        }
    }
}

/// Says whether a message that is refused as a whole was meant as a batch.
fn is_batch(payload: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct HasCalls {
        calls: Option<IgnoredAny>,
    }
    serde_json::from_slice::<HasCalls>(payload).is_ok_and(|message| message.calls.is_some())
}

/// A part of a result that can be missing: the rest still says what became of the call.
struct Part {
    bytes: fn(&SubmitResult) -> usize,
    leave_out: fn(&mut SubmitResult),
}

const PARTS: [Part; 3] = [
    Part {
        bytes: |result| result.feedback.as_ref().map_or(0, |feedback| feedback.get().len()),
        leave_out: |result| result.feedback = None,
    },
    Part {
        bytes: |result| result.error.as_ref().map_or(0, |error| bytes_of(&error.details)),
        leave_out: |result| {
            if let Some(error) = &mut result.error {
                error.details.clear();
            }
        },
    },
    Part {
        bytes: |result| result.error.as_ref().map_or(0, |error| error.message.len()),
        leave_out: |result| {
            if let Some(error) = &mut result.error {
                error.message = shorten(&error.message, MESSAGE);
            }
        },
    },
];

/// Leaves out parts of results, the largest first, until they fit into one reply: the calls are on record by now, so an error
/// instead of the reply would have them sent again.
fn fit(results: &mut [SubmitResult], fits: impl Fn(usize) -> bool) {
    // Without an error a result is short.
    if results.iter().all(|result| result.error.is_none()) {
        return;
    }
    let size = |result: &SubmitResult| bytes_of(result) + 1;
    let mut bytes = AROUND + results.iter().map(size).sum::<usize>();
    for part in PARTS {
        let mut order: Vec<usize> = (0..results.len()).collect();
        order.sort_by_cached_key(|n| Reverse((part.bytes)(&results[*n])));
        for n in order {
            if fits(bytes) {
                return;
            }
            let before = size(&results[n]);
            (part.leave_out)(&mut results[n]);
            bytes = bytes - before + size(&results[n]);
        }
    }
}

/// Counts bytes as JSON; 0 for what cannot be written, and so is no part of a reply either.
fn bytes_of(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |text| text.len())
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
        check_size(&submission, context.config.max_payload)?;
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

fn check_size(submission: &Submission, most: usize) -> Result<(), ApiError> {
    let bytes = submission.arguments.get().len();
    if bytes <= most {
        return Ok(());
    }
    Err(ApiError::new(Code::TooLarge, format!("arguments take {bytes} bytes; allowed: {most}")))
}

async fn refresh_if_unknown(context: &Context, incoming: &[Incoming]) -> Result<(), ApiError> {
    let tools = context.registry.tools();
    let unknown = incoming.iter().filter_map(Incoming::tool).any(|tool| !tools.contains_key(tool));
    if unknown { context.registry.refresh_throttled(&context.store).await } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use redial_proto::{CallState, FieldError, SubmitStatus};
    use serde_json::value::RawValue;

    use super::*;

    fn refused(details: usize, feedback: usize) -> SubmitResult {
        let detail = FieldError {
            path: "/a".to_owned(),
            rule: "type".to_owned(),
            sent: None,
            allowed: "a number".to_owned(),
            hint: None,
        };
        let mut error = ApiError::new(Code::InvalidArguments, "\u{1}".repeat(500));
        error.details = vec![detail; details];
        SubmitResult {
            status: SubmitStatus::Refused,
            call: Some(CallId::generate()),
            state: Some(CallState::Refused),
            feedback: Some(RawValue::from_string(format!("\"{}\"", "f".repeat(feedback))).unwrap()),
            ..SubmitResult::rejected(error)
        }
    }

    #[test]
    fn results_are_shortened_until_they_fit_and_never_lose_what_became_of_the_call() {
        let all = vec![refused(3, 10), refused(20, 5_000), refused(0, 900)];
        let size = |results: &[SubmitResult]| bytes_of(&SubmitBatchReply { results: results.to_vec(), time: None });
        let whole = size(&all);
        for most in (600..whole + 500).step_by(250) {
            let mut results = all.clone();
            fit(&mut results, |bytes| bytes <= most);
            let shape = |results: &[SubmitResult]| -> Vec<_> {
                let code = |result: &SubmitResult| result.error.as_ref().unwrap().code;
                results.iter().map(|result| (result.status, result.call, result.state, code(result))).collect()
            };
            assert_eq!(shape(&results), shape(&all));
            assert!(size(&results) <= most.max(3 * 1_024), "{most}: {}", size(&results));
            let feedback = results.iter().filter(|result| result.feedback.is_some()).count();
            let details: Vec<usize> =
                results.iter().map(|result| result.error.as_ref().unwrap().details.len()).collect();
            assert!(feedback == 0 || details == [3, 20, 0], "feedback is left out first: {most}");
            assert_eq!(size(&results) == whole, most > whole, "{most}: no more than needed");
        }
        let mut results = all;
        fit(&mut results, |bytes| bytes < whole - 1_000);
        assert!(results[1].feedback.is_none() && results[0].feedback.is_some(), "the largest first");
    }

    #[test]
    fn what_has_calls_was_meant_as_a_batch() {
        for (message, expected) in [
            (r#"{"calls":[]}"#, true),
            (r#"{"calls":7}"#, true),
            (r#"{"tool":"echo"}"#, false),
            ("{", false),
            ("[]", false),
        ] {
            assert_eq!(is_batch(message.as_bytes()), expected, "{message}");
        }
    }
}
