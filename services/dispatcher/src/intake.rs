//! Submissions without a reply: the intake stream. What cannot be accepted becomes a dead letter.

use std::{sync::Arc, time::Duration};

use redial_proto::{
    ApiError, Caller, Code, SubmitStatus, TaskSubmission,
    subjects::{Intake, Verb, intake_caller},
};
use redial_queue::Delivery;
use redial_store::{DeadLetter, Rejections};
use tokio_util::sync::CancellationToken;

use crate::{
    asked::{Sent, allowed},
    calls::{
        message::Message,
        submit::{self, Incoming},
    },
    context::Context,
    serve,
    tasks::submit as submit_task,
    wait::until,
};

/// Messages taken at once.
const BATCH: usize = 256;
/// Dead letters written at once; each holds a copy of its message.
const LETTERS: usize = 32;
/// A message that could not be stored is delivered again after this.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let mut deliveries = context.users.intake();
    while let Some(batch) = until(&shutdown, deliveries.next(BATCH)).await {
        // Boxed, because most of the time it only waits.
        Box::pin(take(&context, batch)).await;
    }
    deliveries.end().await;
}

/// Writes what the messages submit, then acknowledges them. A message whose acknowledgement is lost is delivered
/// again, and finds its own calls and tasks by their keys.
async fn take(context: &Context, batch: Vec<Delivery>) {
    let (mut calls, mut tasks) = (Vec::new(), Vec::new());
    for delivery in &batch {
        match intake_caller(delivery.subject()) {
            Some((caller, Intake::Calls)) => calls.push((delivery, allowed(caller, Verb::CallSubmit))),
            Some((caller, Intake::Tasks)) => tasks.push((delivery, allowed(caller, Verb::TaskSubmit))),
            None => calls.push((delivery, Err(no_caller()))),
        }
    }
    let registered = context.registry.tools();
    // Those of unknown tools wait until the registry is read again; the others are acknowledged meanwhile.
    let (unknown, known): (Vec<_>, Vec<_>) = calls
        .into_iter()
        .map(|(delivery, caller)| (delivery, caller.and_then(|caller| Ok((caller, Message::read(&delivery.payload)?)))))
        .partition(|(_, message)| message.as_ref().is_ok_and(|(_, message)| message.names_unknown(&registered)));
    let is_costly = |message: &Sent<Message>| message.as_ref().is_ok_and(|(_, message)| message.is_costly(&registered));
    let (costly, known): (Vec<_>, Vec<_>) = known.into_iter().partition(|(_, message)| is_costly(message));
    tokio::join!(take_calls(context, known), take_calls(context, unknown), take_tasks(context, tasks));
    // Last, because their check takes this thread.
    take_calls(context, costly).await;
}

async fn take_calls(context: &Context, batch: Vec<(&Delivery, Sent<Message>)>) {
    let mut incoming = Vec::new();
    let mut shapes = Vec::with_capacity(batch.len());
    for (delivery, message) in batch {
        match message {
            Ok((caller, message)) => {
                let (mut submissions, many) = Incoming::of(message, &caller, delivery.traceparent());
                for (n, incoming) in submissions.iter_mut().enumerate() {
                    if let Ok((_, submission)) = &mut incoming.submission {
                        submission.key.get_or_insert_with(|| own_key(delivery, n));
                    }
                }
                shapes.push((delivery, submissions.len(), many));
                incoming.extend(submissions);
            }
            Err(error) => {
                shapes.push((delivery, 1, false));
                incoming.push(Incoming { submission: Err(error), traceparent: None });
            }
        }
    }
    let mut results = submit::submit(context, incoming).await.into_iter();
    let taken = shapes.into_iter().map(|(delivery, count, many)| {
        let results = results.by_ref().take(count).enumerate();
        let rejected = results.filter(|(_, result)| result.status == SubmitStatus::Rejected);
        let errors = rejected.filter_map(|(n, result)| Some((many.then_some(n), result.error?)));
        Taken { delivery, errors: errors.collect() }
    });
    acknowledge(context, taken.collect()).await;
}

async fn take_tasks(context: &Context, batch: Vec<(&Delivery, Result<Caller, ApiError>)>) {
    let (deliveries, callers): (Vec<&Delivery>, Vec<_>) = batch.into_iter().unzip();
    let incoming = deliveries.iter().zip(callers).map(|(delivery, caller)| {
        let submission = caller.and_then(|caller| {
            let mut task: TaskSubmission = serve::decode(&delivery.payload)?;
            task.key.get_or_insert_with(|| own_key(delivery, 0));
            Ok((caller, task))
        });
        submit_task::Incoming { submission, traceparent: delivery.traceparent().map(str::to_owned) }
    });
    // Nobody could be told to try again.
    let results = submit_task::submit(context, incoming.collect(), true).await;
    let taken = deliveries.into_iter().zip(results).map(|(delivery, result)| {
        let errors = result.error.map(|error| (None, error)).into_iter().collect();
        Taken { delivery, errors }
    });
    acknowledge(context, taken.collect()).await;
}

fn no_caller() -> ApiError {
    let message = "the subject is not of the form redial.intake.<tenant>.<user>.<role>.calls or …tasks";
    ApiError::new(Code::InvalidMessage, message)
}

/// Makes a key that is the same however often a message without one is delivered. The time at which the stream stored
/// it distinguishes messages with the same number of a stream that was wiped.
fn own_key(delivery: &Delivery, n: usize) -> String {
    let stored = delivery.stored_at.timestamp_nanos_opt().unwrap_or_default();
    format!("intake-{stored}-{}-{n}", delivery.stream_sequence)
}

struct Taken<'a> {
    delivery: &'a Delivery,
    errors: Vec<(Option<usize>, ApiError)>,
}

/// Acknowledges messages. Those of which something was rejected are kept before, as one dead letter each.
async fn acknowledge(context: &Context, taken: Vec<Taken<'_>>) {
    let mut rejected = Vec::new();
    for message in taken {
        if message.errors.is_empty() {
            message.delivery.ack().await;
        } else if message.errors.iter().any(|(_, error)| matches!(error.code, Code::Unavailable | Code::Internal)) {
            message.delivery.nak(PAUSE).await;
        } else {
            rejected.push(message);
        }
    }
    for some in rejected.chunks(LETTERS) {
        keep(context, some).await;
    }
}

async fn keep(context: &Context, rejected: &[Taken<'_>]) {
    let mut letters: Vec<DeadLetter> = rejected.iter().map(Taken::letter).collect();
    if let Err(error) = context.store.insert_dead_letters(&mut letters).await {
        tracing::warn!(%error, "Failed to store dead letters; the submissions will be delivered again");
    }
    // Those that are left may not be on record.
    let (kept, left) = rejected.split_at(rejected.len().saturating_sub(letters.len()));
    for message in kept {
        message.delivery.ack().await;
    }
    for message in left {
        message.delivery.nak(PAUSE).await;
    }
}

impl Taken<'_> {
    fn letter(&self) -> DeadLetter {
        let mut rejections = Rejections::default();
        for (position, error) in &self.errors {
            rejections.add(*position, error);
        }
        DeadLetter::of_intake(self.delivery.subject(), self.delivery.payload.to_vec(), rejections)
    }
}
