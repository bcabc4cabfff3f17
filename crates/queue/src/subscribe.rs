//! Subscribes over core NATS.

use async_nats::Subscriber;
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};

use crate::{Queue, QueueError};

impl Queue {
    /// Subscribes to a subject; wildcards are allowed. Survives reconnects, but misses messages published meanwhile.
    pub async fn subscribe(&self, subject: &str) -> Result<Subscription, QueueError> {
        let subscriber = self.inner.client.subscribe(subject.to_owned()).await;
        Ok(Subscription { subscriber: subscriber.map_err(|error| QueueError::nats(subject, &error))? })
    }
}

/// Messages of one subject as they arrive.
pub struct Subscription {
    subscriber: Subscriber,
}

impl Subscription {
    /// The next body; `None` only after the connection was closed. Can be cancelled without loss.
    pub async fn next(&mut self) -> Option<Bytes> {
        self.subscriber.next().await.map(|message| message.payload)
    }

    /// Drops the messages that have arrived.
    pub fn skip_arrived(&mut self) {
        while let Some(Some(_)) = self.subscriber.next().now_or_never() {}
    }

    /// The next body, with the subject that it was sent to.
    pub async fn next_with_subject(&mut self) -> Option<(String, Bytes)> {
        self.subscriber.next().await.map(|message| (message.subject.into_string(), message.payload))
    }
}
