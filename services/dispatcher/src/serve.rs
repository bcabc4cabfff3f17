//! Answers requests on a subject.

use std::sync::Arc;

use redial_proto::{ApiError, Code, subjects};
use redial_queue::{QueueError, Request};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::{
    Semaphore,
    mpsc::{self, error::TrySendError},
};

use crate::{context::Context, running::Running, wait::until};

/// Feeds the requests of a subject into a channel until shutdown. Dispatchers share them.
pub(crate) async fn feed(
    running: &Running,
    subject: &'static str,
    sender: mpsc::Sender<Request>,
) -> Result<(), QueueError> {
    let mut requests = running.context.queue.serve(subject, Some(subjects::DISPATCHERS)).await?;
    running.spawn(subject, |_, shutdown| async move {
        while let Some(Some(request)) = until(&shutdown, requests.next()).await {
            if sender.send(request).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Hands over the requests that have to wait for something; returns the others, which must not wait with them.
pub(crate) async fn hand_over<T>(
    batch: Vec<(Request, T)>,
    waiting: &mpsc::Sender<Request>,
    must_wait: impl Fn(&T) -> bool,
) -> Vec<(Request, T)> {
    let (later, now): (Vec<_>, Vec<_>) = batch.into_iter().partition(|(_, content)| must_wait(content));
    for (request, _) in later {
        if let Err(TrySendError::Full(request) | TrySendError::Closed(request)) = waiting.try_send(request) {
            let message = "too many requests wait for the database, or for the check of costly arguments; try again";
            request.reply_error(&ApiError::new(Code::Unavailable, message)).await;
        }
    }
    now
}

/// Requests of one verb that are answered at the same time; more of them wait, so that a flood takes neither the memory nor
/// the connections of all others.
const AT_ONCE: usize = 64;

/// Answers each request of a subject in a task of its own: for verbs that are too rare to need batches.
pub(crate) async fn each<Q, R, F>(
    running: &Running,
    subject: &'static str,
    answer: fn(Arc<Context>, Q) -> F,
) -> Result<(), QueueError>
where
    Q: DeserializeOwned + Send + 'static,
    R: Serialize + Sync + Send + 'static,
    F: Future<Output = Result<R, ApiError>> + Send + 'static,
{
    let (sender, mut receiver) = mpsc::channel::<Request>(64);
    feed(running, subject, sender).await?;
    let tracker = running.loops.tracker().clone();
    let places = Arc::new(Semaphore::new(AT_ONCE));
    running.spawn(subject, |context, _| async move {
        while let Some(request) = receiver.recv().await {
            // Never closed.
            let Ok(place) = places.clone().acquire_owned().await else { return };
            let context = context.clone();
            tracker.spawn(async move {
                let _place = place;
                let done = match decode::<Q>(&request.payload) {
                    Ok(question) => answer(context, question).await,
                    Err(error) => Err(error),
                };
                match done {
                    Ok(reply) => request.reply(&reply).await,
                    Err(error) => request.reply_error(&error).await,
                }
            });
        }
    });
    Ok(())
}

/// A message of the wire contract, or what is wrong with it and where. Every message is an object; without the check
/// an array would be taken for its fields in order.
pub(crate) fn decode<'a, T: serde::Deserialize<'a>>(payload: &'a [u8]) -> Result<T, ApiError> {
    let wrong = |what: String| ApiError::new(Code::InvalidMessage, format!("the message cannot be read: {what}"));
    if payload.trim_ascii_start().first() != Some(&b'{') {
        return Err(wrong("a JSON object is needed".to_owned()));
    }
    serde_json::from_slice(payload).map_err(|error| wrong(error.to_string()))
}
