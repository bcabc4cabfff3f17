//! The least that any queue on JetStream must do: publish with acknowledgement, pull, acknowledge. No headers, no ids, no
//! reconnect logic; same kind of stream, same server.

use std::{future::IntoFuture, time::Duration};

use async_nats::{
    ConnectOptions, ServerAddr,
    jetstream::{
        Context, ContextBuilder, Message,
        consumer::{AckPolicy, PullConsumer, pull},
        stream::{Config, DiscardPolicy, RetentionPolicy, StorageType},
    },
};
use bytes::Bytes;
use futures_util::StreamExt;

/// How long the server may take to answer.
const ANSWER: Duration = Duration::from_secs(2);
/// Batches that the client holds before they are worked on.
const FETCHED: usize = 4;

/// A work-queue stream with one subject and one consumer.
#[derive(Clone)]
pub(super) struct Pipe {
    jetstream: Context,
    name: String,
    consumer: PullConsumer,
}

/// Connects, with the limits of Redial's own connections.
pub(super) async fn connect(url: &str) -> anyhow::Result<Context> {
    let address: ServerAddr = url.parse()?;
    // The client does not take them from the URL.
    let (user, password) = (address.username().unwrap_or_default(), address.password().unwrap_or_default());
    let client =
        ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned()).connect(address.clone()).await?;
    Ok(ContextBuilder::new().timeout(ANSWER).ack_timeout(ANSWER).max_ack_inflight(1_000_000).build(client))
}

impl Pipe {
    /// Creates the stream, empty.
    pub(super) async fn create(jetstream: &Context, name: &str) -> anyhow::Result<Self> {
        // Of another baseline, or of an earlier run that was killed.
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
            .await?;
        let consumer = stream
            .create_consumer(pull::Config {
                durable_name: Some("baseline".to_owned()),
                ack_policy: AckPolicy::Explicit,
                max_ack_pending: 500_000,
                ..pull::Config::default()
            })
            .await?;
        Ok(Self { jetstream: jetstream.clone(), name: name.to_owned(), consumer })
    }

    /// Publishes messages, pipelined, and waits for their acknowledgements.
    pub(super) async fn publish(&self, messages: Vec<Bytes>) -> anyhow::Result<()> {
        let mut acks = Vec::with_capacity(messages.len());
        for message in messages {
            acks.push(self.jetstream.publish(self.name.clone(), message).await?);
        }
        for ack in acks {
            ack.into_future().await?;
        }
        Ok(())
    }

    /// Returns the messages as they arrive. Each batch is what was there at once. Further batches are fetched
    /// meanwhile.
    pub(super) async fn messages(&self, most: usize) -> anyhow::Result<Messages> {
        let stream = self.consumer.stream().max_messages_per_batch(most * FETCHED).messages().await?;
        Ok(Messages { stream: Box::pin(stream.ready_chunks(most)) })
    }

    pub(super) async fn remove(self) {
        let _ = self.jetstream.delete_stream(&self.name).await;
    }
}

type Chunk = Vec<Result<Message, pull::MessagesError>>;

pub(super) struct Messages {
    stream: std::pin::Pin<Box<dyn futures_util::Stream<Item = Chunk> + Send>>,
}

impl Messages {
    /// Takes the next batch, to be acknowledged; empty if none arrived within a second.
    pub(super) async fn next(&mut self) -> Vec<Message> {
        let chunk = tokio::time::timeout(Duration::from_secs(1), self.stream.next()).await;
        chunk.ok().flatten().unwrap_or_default().into_iter().filter_map(Result::ok).collect()
    }
}

pub(super) async fn ack(batch: Vec<Message>) {
    for message in batch {
        // A lost acknowledgement only delivers the message again.
        let _ = message.ack().await;
    }
}

pub(super) fn payloads(batch: &[Message]) -> Vec<Bytes> {
    batch.iter().map(|message| message.payload.clone()).collect()
}
