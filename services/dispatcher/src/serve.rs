//! Answers requests on a subject.

use std::sync::Arc;

use redial_proto::{ApiError, Code, subjects};
use redial_queue::{QueueError, Request};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::mpsc;

use crate::{context::Context, running::Running, wait::until};

/// Feeds the requests of a subject into a channel until shutdown. Dispatchers share them.
pub(crate) async fn feed(
    running: &Running,
    subject: &'static str,
    sender: mpsc::Sender<Request>,
) -> Result<(), QueueError> {
    let mut requests = running.context.queue.serve(subject, Some(subjects::DISPATCHERS)).await?;
    running.spawn(|_, shutdown| async move {
        while let Some(Some(request)) = until(&shutdown, requests.next()).await {
            if sender.send(request).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

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
    let tracker = running.tracker.clone();
    running.spawn(|context, _| async move {
        while let Some(request) = receiver.recv().await {
            let context = context.clone();
            tracker.spawn(async move {
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
