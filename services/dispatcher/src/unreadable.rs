//! Sets aside messages that the NATS client cannot receive: each delivery of one costs a dispatcher its client or its
//! connection, and they would be delivered without an end.
//!
//! A message is looked at once it was delivered and not answered, so each costs that at most once, or a few times if
//! dispatchers start later than it is delivered again.

use std::sync::Arc;

use redial_proto::{
    ApiError, Code,
    subjects::{INTAKE_STREAM, RESULTS_STREAM},
};
use redial_store::{DeadLetter, Rejections};
use tokio_util::sync::CancellationToken;

use crate::{context::Context, error::DispatcherError, wait::until};

/// Sets such messages aside after each reconnection of those that take messages, which such a message may have caused.
pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let (mut users, mut workers) = (context.users.connections(), context.workers.connections());
    let mut changed = async || {
        tokio::select! {
            changed = users.changed() => changed,
            changed = workers.changed() => changed,
        }
    };
    while let Some(Ok(())) = until(&shutdown, changed()).await {
        set_aside(&context).await;
    }
}

/// Makes dead letters of such messages. Called before this process takes messages, because another one may have died of them.
pub(crate) async fn set_aside(context: &Context) {
    for stream in [INTAKE_STREAM, RESULTS_STREAM] {
        if let Err(error) = set_aside_of(context, stream).await {
            tracing::warn!(stream, %error, "Failed to look for messages with malformed headers");
        }
    }
}

async fn set_aside_of(context: &Context, stream: &'static str) -> Result<(), DispatcherError> {
    for message in context.queue.unreadable(stream).await? {
        let error = ApiError::new(Code::InvalidMessage, "the headers of the message are malformed");
        let mut rejections = Rejections::default();
        rejections.add(None, &error);
        let (subject, payload) = (message.subject.as_str(), message.payload.clone());
        let letter = match stream {
            INTAKE_STREAM => DeadLetter::of_intake(subject, payload, rejections),
            _ => DeadLetter::of_results(subject, payload, rejections),
        };
        context.store.insert_dead_letters(&mut vec![letter]).await?;
        context.queue.discard(&message).await?;
        let sequence = message.stream_sequence;
        tracing::error!(
            stream,
            sequence,
            subject,
            "Keeping a message as a dead letter because of its malformed headers"
        );
    }
    Ok(())
}
