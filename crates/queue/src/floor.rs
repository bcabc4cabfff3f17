//! The least that any queue on JetStream must do, for the benchmark to measure against: publish with acknowledgement,
//! pull, acknowledge. No headers, no ids, no reconnect logic; same kind of stream, same server.

use std::{future::IntoFuture, time::Duration};

use async_nats::jetstream::{
    consumer::{AckPolicy, PullConsumer, pull},
    stream::{Config, DiscardPolicy, RetentionPolicy, StorageType},
};
use bytes::Bytes;
use futures_util::StreamExt;

use crate::{Queue, QueueError};

/// A work-queue stream with one subject and one consumer.
#[derive(Clone)]
pub struct Pipe {
    queue: Queue,
    name: String,
    consumer: PullConsumer,
}

impl Pipe {
    /// Makes the stream anew, empty.
    pub async fn create(queue: &Queue, name: &str) -> Result<Self, QueueError> {
        let wrong = |error: &dyn std::error::Error| QueueError::nats(name, &error);
        let jetstream = &queue.inner.jetstream;
        // It is not there the first time.
        let _ = jetstream.delete_stream(name).await;
        let stream = jetstream
            .create_stream(Config {
                name: name.to_owned(),
                subjects: vec![name.to_owned()],
                retention: RetentionPolicy::WorkQueue,
                discard: DiscardPolicy::New,
                storage: StorageType::File,
                ..Config::default()
            })
            .await
            .map_err(|error| wrong(&error))?;
        let consumer = stream
            .create_consumer(pull::Config {
                durable_name: Some("floor".to_owned()),
                ack_policy: AckPolicy::Explicit,
                max_ack_pending: 500_000,
                ..pull::Config::default()
            })
            .await
            .map_err(|error| wrong(&error))?;
        Ok(Self { queue: queue.clone(), name: name.to_owned(), consumer })
    }

    /// Publishes messages, pipelined, and waits for their acknowledgements.
    pub async fn publish(&self, messages: Vec<Bytes>) -> Result<(), QueueError> {
        let mut acks = Vec::with_capacity(messages.len());
        for message in messages {
            let ack = self.queue.inner.jetstream.publish(self.name.clone(), message).await;
            acks.push(ack.map_err(|error| QueueError::nats(&self.name, &error))?);
        }
        for ack in acks {
            ack.into_future().await.map_err(|error| QueueError::nats(&self.name, &error))?;
        }
        Ok(())
    }

    /// The messages, as they come. Each batch is what was there at once, and is acknowledged by [`Taken::ack`].
    pub async fn messages(&self, most: usize) -> Result<Messages, QueueError> {
        let stream = self.consumer.stream().max_messages_per_batch(most).messages().await;
        let stream = stream.map_err(|error| QueueError::nats(&self.name, &error))?;
        Ok(Messages { stream: Box::pin(stream.ready_chunks(most)) })
    }

    /// Removes the stream.
    pub async fn remove(self) {
        let _ = self.queue.inner.jetstream.delete_stream(&self.name).await;
    }
}

type Chunk = Vec<Result<async_nats::jetstream::Message, pull::MessagesError>>;

/// Batches of messages.
pub struct Messages {
    stream: std::pin::Pin<Box<dyn futures_util::Stream<Item = Chunk> + Send>>,
}

/// Messages that were taken and not yet acknowledged.
pub struct Taken(Vec<async_nats::jetstream::Message>);

impl Messages {
    /// The next batch; empty if none came within a second.
    pub async fn next(&mut self) -> Taken {
        let chunk = tokio::time::timeout(Duration::from_secs(1), self.stream.next()).await;
        Taken(chunk.ok().flatten().unwrap_or_default().into_iter().filter_map(Result::ok).collect())
    }
}

impl Taken {
    /// Their contents.
    pub fn payloads(&self) -> impl Iterator<Item = &Bytes> {
        self.0.iter().map(|message| &message.payload)
    }

    /// Acknowledges all.
    pub async fn ack(self) {
        for message in self.0 {
            // A lost acknowledgement only delivers the message again.
            let _ = message.ack().await;
        }
    }
}
