//! Subscribes over core NATS.

use async_nats::{Message, Subscriber};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};

use crate::{
    Queue, QueueError,
    connect::{ANSWER, RECONNECT},
};

impl Queue {
    /// Subscribes to a subject; wildcards are allowed. Survives reconnects, but misses messages published meanwhile.
    pub async fn subscribe(&self, subject: &str) -> Result<Subscription, QueueError> {
        let subscriber = self.subscriber(subject, None).await?;
        Ok(Subscription { subscriber, queue: self.clone(), subject: subject.to_owned() })
    }

    pub(crate) async fn subscriber(&self, subject: &str, group: Option<&str>) -> Result<Subscriber, QueueError> {
        let client = &self.live().client;
        let subscriber = match group {
            Some(group) => client.queue_subscribe(subject.to_owned(), group.to_owned()).await,
            None => client.subscribe(subject.to_owned()).await,
        };
        subscriber.map_err(|error| QueueError::nats(subject, &error))
    }

    /// Subscribes again after the client failed; waits until there is another one.
    pub(crate) async fn subscribe_again(&self, subject: &str, group: Option<&str>) -> Subscriber {
        loop {
            match self.connected(ANSWER).await {
                Ok(()) => match self.subscriber(subject, group).await {
                    Ok(subscriber) => return subscriber,
                    Err(error) => {
                        tracing::debug!(subject, %error, "Failed to subscribe again");
                        // The client may look connected for a moment after it failed; without a pause nobody would come to see that.
                        tokio::time::sleep(RECONNECT.after(1)).await;
                    }
                },
                Err(error) => tracing::debug!(subject, %error, "Waiting to subscribe again"),
            }
        }
    }
}

/// Messages of one subject as they arrive.
pub struct Subscription {
    subscriber: Subscriber,
    queue: Queue,
    subject: String,
}

impl Subscription {
    /// Takes the next body. Can be cancelled without loss.
    pub async fn next(&mut self) -> Bytes {
        self.message().await.payload
    }

    async fn message(&mut self) -> Message {
        loop {
            match self.subscriber.next().await {
                Some(message) => return message,
                None => self.subscriber = self.queue.subscribe_again(&self.subject, None).await,
            }
        }
    }

    /// Drops the messages that have arrived.
    pub fn skip_arrived(&mut self) {
        while let Some(Some(_)) = self.subscriber.next().now_or_never() {}
    }

    /// Takes the next body, with the subject that it was sent to.
    pub async fn next_with_subject(&mut self) -> (String, Bytes) {
        let message = self.message().await;
        (message.subject.into_string(), message.payload)
    }
}
