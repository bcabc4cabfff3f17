//! Publishes jobs in pipelined batches, and single messages with and without an acknowledgement.

use std::future::IntoFuture as _;

use async_nats::{
    HeaderMap,
    jetstream::{
        ErrorCode,
        context::{PublishAckFuture, PublishError, PublishErrorKind},
        message::PublishMessage,
    },
};
use bytes::Bytes;
use redial_proto::{
    Pack, PackedJob, ReturnedPack, UserRole,
    limits::MAX_MESSAGE,
    subjects::{self, Intake, check_consumer_name},
    tool::check_name,
    traceparent,
};
use redial_records::OutgoingJob;
use serde::Serialize;
use tokio::time::Instant;

use crate::{Queue, QueueError, apart::BODY_TIMEOUT, connect::ANSWER};

/// Messages in flight at once. The client library allows 5,000 before it waits for acknowledgements.
const PIPELINE: usize = 2048;

impl Queue {
    /// Publishes packs of jobs, each of one tool for one consumer and not empty: sends a batch, then waits for its
    /// acknowledgements, at most 2 s. Results are in the order of the packs. A `Timeout` means "unknown": the message may still
    /// be stored.
    pub async fn publish_packs(&self, packs: &[&[OutgoingJob]]) -> Vec<Result<(), QueueError>> {
        let mut results = Vec::with_capacity(packs.len());
        for batch in packs.chunks(PIPELINE) {
            if !self.is_connected() {
                results.extend(batch.iter().map(|_| Err(QueueError::Disconnected)));
                continue;
            }
            let mut acks = Vec::with_capacity(batch.len());
            for pack in batch {
                acks.push(self.send_pack(pack).await);
            }
            let deadline = Instant::now() + ANSWER;
            for ack in acks {
                let stored = match ack {
                    Ok(ack) => stored("the job stream", ack, deadline).await,
                    Err(error) => Err(error),
                };
                results.push(stored);
            }
        }
        results
    }

    async fn send_pack(&self, pack: &[OutgoingJob]) -> Result<PublishAckFuture, QueueError> {
        let [job, others @ ..] = pack else { return Err(QueueError::Name("a pack without jobs".to_owned())) };
        check_names(&job.consumer, &job.job.tool)?;
        let id = format!("{}.{}.{}", job.job.call, job.job.attempt, job.publish_no);
        if others.is_empty() {
            let subject = subjects::job(&job.consumer, &job.job.tool);
            let payload = encode(&subject, &job.job)?;
            return self.send(&subject, payload, traced(job.traceparent.as_deref()).message_id(id)).await;
        }
        let packed =
            pack.iter().map(|one| PackedJob { call: one.job.call, attempt: one.job.attempt, bytes: one.job.bytes });
        let message = Pack { tool: job.job.tool.clone(), jobs: packed.collect() };
        let subject = subjects::pack(&job.consumer, &message.tool, message.jobs.len());
        let id = format!("{id}+{}", others.len());
        self.send(&subject, encode(&subject, &message)?, PublishMessage::build().message_id(id)).await
    }

    /// Publishes jobs again that a worker has given back, and waits for the acknowledgement, at most 2 s. Without an id, by which
    /// the server would take it for one that it has.
    pub async fn publish_returned(&self, ReturnedPack { consumer, pack }: &ReturnedPack) -> Result<(), QueueError> {
        check_names(consumer, &pack.tool)?;
        match pack.jobs[..] {
            [job] => self.put(&subjects::job(consumer, &pack.tool), &job.of_tool(&pack.tool)).await,
            _ => self.put(&subjects::pack(consumer, &pack.tool, pack.jobs.len()), pack).await,
        }
    }

    /// Publishes over core NATS, without an acknowledgement.
    pub async fn publish<T: Serialize>(&self, subject: &str, message: &T) -> Result<(), QueueError> {
        let payload = encode(subject, message)?;
        self.check_size(subject, payload.len())?;
        let live = self.live();
        let publish = live.client.publish(subject.to_owned(), payload);
        match tokio::time::timeout(ANSWER, publish).await {
            Ok(sent) => sent.map_err(|error| QueueError::nats(subject, &error)),
            Err(_) => Err(QueueError::Timeout { what: subject.to_owned(), after: ANSWER }),
        }
    }

    /// Puts a message on a stream and waits for the acknowledgement, at most 2 s.
    pub async fn put<T: Serialize>(&self, subject: &str, message: &T) -> Result<(), QueueError> {
        self.put_bytes(subject, encode(subject, message)?, None).await
    }

    /// Puts a message on a stream as [`Queue::put`] does; what is too large for one goes apart, in pieces, to where a
    /// request on `request` would go.
    pub async fn put_large<T: Serialize>(&self, subject: &str, request: &str, message: &T) -> Result<(), QueueError> {
        let body = encode(subject, message)?;
        if self.check_size(subject, body.len()).is_ok() {
            return self.put_bytes(subject, body, None).await;
        }
        let payload = self.put_pieces(request, &body, Instant::now() + BODY_TIMEOUT).await?;
        self.put_message(
            subject,
            Bytes::new(),
            PublishMessage::build().header(subjects::PAYLOAD, payload.to_string().as_str()),
        )
        .await
    }

    /// Puts a submission, or a batch of them, on the intake stream as this connection's user, and waits for the
    /// acknowledgement, at most 2 s.
    pub async fn put_intake(&self, what: Intake, payload: Bytes, traceparent: Option<&str>) -> Result<(), QueueError> {
        self.put_bytes(&subjects::intake(self.tenant(), self.user(), UserRole::Submit, what), payload, traceparent)
            .await
    }

    async fn put_bytes(&self, subject: &str, payload: Bytes, traceparent: Option<&str>) -> Result<(), QueueError> {
        self.put_message(subject, payload, traced(traceparent)).await
    }

    async fn put_message(&self, subject: &str, payload: Bytes, message: PublishMessage) -> Result<(), QueueError> {
        self.connected(ANSWER).await?;
        let refused = self.inner.refusals.of(subject);
        let ack = self.send(subject, payload, message).await?;
        tokio::select! {
            stored = stored(subject, ack, Instant::now() + ANSWER) => stored,
            refusal = refused => Err(refusal),
        }
    }

    async fn send(
        &self,
        subject: &str,
        payload: Bytes,
        message: PublishMessage,
    ) -> Result<PublishAckFuture, QueueError> {
        self.check_size(subject, payload.len())?;
        let message = match self.said() {
            Some(said) => message.header(subjects::CONTRACT, said),
            None => message,
        };
        let sent = self.live().jetstream.send_publish(subject.to_owned(), message.payload(payload)).await;
        sent.map_err(|error| publish_error(subject, &error))
    }

    /// Fails for a message over the server's limit, which would close the connection and fail everything in flight on
    /// it.
    pub(crate) fn check_size(&self, subject: &str, bytes: usize) -> Result<(), QueueError> {
        // Leaves room for headers below the server's limit.
        let max = MAX_MESSAGE.min(self.live().client.max_payload().saturating_sub(4096));
        if bytes <= max {
            return Ok(());
        }
        Err(QueueError::TooLarge { subject: subject.to_owned(), bytes, max })
    }
}

fn check_names(consumer: &str, tool: &str) -> Result<(), QueueError> {
    check_consumer_name(consumer).and_then(|()| check_name("tool name", tool)).map_err(QueueError::Name)
}

async fn stored(subject: &str, ack: PublishAckFuture, deadline: Instant) -> Result<(), QueueError> {
    let timeout = || QueueError::Timeout { what: format!("publish to {subject}"), after: ANSWER };
    match tokio::time::timeout_at(deadline, ack.into_future()).await {
        // Also for a duplicate: it was stored before, and the acknowledgement was lost.
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(publish_error(subject, &error)),
        Err(_) => Err(timeout()),
    }
}

fn publish_error(subject: &str, error: &PublishError) -> QueueError {
    let what = format!("publish to {subject}");
    match error.kind() {
        PublishErrorKind::StreamNotFound => QueueError::Missing { name: format!("the stream of {subject}") },
        PublishErrorKind::TimedOut => QueueError::Timeout { what, after: ANSWER },
        _ => match refusal(error) {
            Some(refusal) if refusal.error_code() == ErrorCode::STREAM_STORE_FAILED => {
                QueueError::Full { subject: subject.to_owned(), reason: refusal.to_string() }
            }
            _ => QueueError::nats(what, error),
        },
    }
}

/// Returns the error that the server answered instead of an acknowledgement.
fn refusal(error: &PublishError) -> Option<&async_nats::jetstream::Error> {
    std::error::Error::source(error)?.downcast_ref()
}

fn traced(traceparent: Option<&str>) -> PublishMessage {
    let message = PublishMessage::build();
    match traceparent.and_then(traceparent::read) {
        Some(traceparent) => message.header(subjects::TRACEPARENT, traceparent),
        None => message,
    }
}

/// Returns the sender's trace context. Anything else in the header is ignored.
pub(crate) fn traceparent_of(headers: Option<&HeaderMap>) -> Option<String> {
    traceparent::read(headers?.get(subjects::TRACEPARENT)?.as_str()).map(str::to_owned)
}

pub(crate) fn encode<T: Serialize + ?Sized>(subject: &str, message: &T) -> Result<Bytes, QueueError> {
    let bytes = serde_json::to_vec(message);
    bytes.map(Bytes::from).map_err(|error| QueueError::nats(format!("message for {subject}"), &error))
}
