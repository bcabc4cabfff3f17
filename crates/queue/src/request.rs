//! Sends requests over core NATS.

use std::time::Duration;

use async_nats::{HeaderMap, Message, RequestErrorKind};
use bytes::Bytes;
use redial_proto::{
    ApiError, Door, UserRole,
    subjects::{self, Verb},
    traceparent,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Queue, QueueError, publish::encode, version};

impl Queue {
    /// Asks the dispatchers for something as this connection's user, in the first role that may ask for it, and waits for the
    /// reply like [`Queue::request`].
    pub async fn ask<Q: Serialize, R: DeserializeOwned>(
        &self,
        verb: Verb,
        request: &Q,
        timeout: Duration,
    ) -> Result<R, QueueError> {
        self.ask_as(verb.roles()[0], verb, request, timeout).await
    }

    /// The same in this role.
    pub async fn ask_as<Q: Serialize, R: DeserializeOwned>(
        &self,
        role: UserRole,
        verb: Verb,
        request: &Q,
        timeout: Duration,
    ) -> Result<R, QueueError> {
        self.request(&subjects::api(self.tenant(), self.user(), role, verb), request, timeout).await
    }

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
        let reply = self.send_request(subject, payload, traceparent, timeout).await?;
        decode_reply(subject, &reply)
    }

    pub(crate) async fn send_request(
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
        let headers = self.headers(traceparent);
        if !headers.is_empty() {
            request = request.headers(headers);
        }
        let refused = self.inner.refusals.of(subject);
        let answer = self.inner.client.send_request(subject.to_owned(), request);
        let answer = tokio::select! {
            answer = tokio::time::timeout_at(deadline, answer) => answer,
            refusal = refused => return Err(refusal),
        };
        match answer {
            Ok(Ok(message)) => Ok(message),
            Ok(Err(error)) => Err(match error.kind() {
                RequestErrorKind::NoResponders => QueueError::NoResponders { subject: subject.to_owned() },
                RequestErrorKind::TimedOut => QueueError::Timeout { what: subject.to_owned(), after: timeout },
                _ => QueueError::nats(subject, &error),
            }),
            Err(_) => Err(QueueError::Timeout { what: subject.to_owned(), after: timeout }),
        }
    }

    fn headers(&self, traceparent: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(traceparent) = traceparent.and_then(traceparent::read) {
            headers.insert(subjects::TRACEPARENT, traceparent);
        }
        if let Some(said) = version::said() {
            headers.insert(subjects::CONTRACT, said);
        }
        if self.inner.door != Door::default() {
            headers.insert(subjects::DOOR, self.inner.door.as_str());
        }
        headers
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
