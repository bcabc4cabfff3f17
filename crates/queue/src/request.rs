//! Sends requests over core NATS.

use std::time::Duration;

use async_nats::{HeaderMap, Message, RequestErrorKind};
use bytes::Bytes;
use redial_proto::{ApiError, subjects, traceparent};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Queue, QueueError, publish::encode};

impl Queue {
    /// Sends a request and waits for the reply, at most `timeout`. Without a connection it waits for one first, so that
    /// nothing is sent after the caller gave up.
    pub async fn request<Q: Serialize, R: DeserializeOwned>(
        &self,
        subject: &str,
        request: &Q,
        timeout: Duration,
    ) -> Result<R, QueueError> {
        self.request_traced(subject, request, timeout, None).await
    }

    /// The same with a W3C trace context in the header.
    pub async fn request_traced<Q: Serialize, R: DeserializeOwned>(
        &self,
        subject: &str,
        request: &Q,
        timeout: Duration,
        traceparent: Option<&str>,
    ) -> Result<R, QueueError> {
        let payload = encode(subject, request)?;
        let reply = self.ask(subject, payload, traceparent, timeout).await?;
        decode_reply(subject, &reply)
    }

    pub(crate) async fn ask(
        &self,
        subject: &str,
        payload: Bytes,
        traceparent: Option<&str>,
        timeout: Duration,
    ) -> Result<Message, QueueError> {
        let deadline = tokio::time::Instant::now() + timeout;
        self.connected(timeout).await?;
        self.check_size(subject, payload.len())?;
        let mut request = async_nats::Request::new().payload(payload).timeout(None);
        if let Some(traceparent) = traceparent.and_then(traceparent::read) {
            let mut headers = HeaderMap::new();
            headers.insert(subjects::TRACEPARENT, traceparent);
            request = request.headers(headers);
        }
        let answer = self.inner.client.send_request(subject.to_owned(), request);
        match tokio::time::timeout_at(deadline, answer).await {
            Ok(Ok(message)) => Ok(message),
            Ok(Err(error)) => Err(match error.kind() {
                RequestErrorKind::NoResponders => QueueError::NoResponders { subject: subject.to_owned() },
                RequestErrorKind::TimedOut => QueueError::Timeout { what: subject.to_owned(), after: timeout },
                _ => QueueError::nats(subject, &error),
            }),
            Err(_) => Err(QueueError::Timeout { what: subject.to_owned(), after: timeout }),
        }
    }
}

fn decode_reply<R: DeserializeOwned>(subject: &str, reply: &Message) -> Result<R, QueueError> {
    let failed = |error: serde_json::Error| QueueError::Decode {
        subject: format!("reply to {subject}"),
        reason: error.to_string(),
    };
    if reply.headers.as_ref().is_some_and(|headers| headers.get(subjects::ERROR).is_some()) {
        let error: ApiError = serde_json::from_slice(&reply.payload).map_err(failed)?;
        return Err(QueueError::Api(error));
    }
    serde_json::from_slice(&reply.payload).map_err(failed)
}
