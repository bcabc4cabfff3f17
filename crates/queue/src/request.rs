//! Sends requests over core NATS.

use std::time::Duration;

use async_nats::{HeaderMap, Message, RequestErrorKind};
use bytes::Bytes;
use redial_proto::{
    ApiError, Door, TokenId, UserRole,
    subjects::{self, Verb},
    traceparent,
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::Instant;

use crate::{
    Queue, QueueError,
    apart::{BODY_TIMEOUT, payload_of},
    publish::encode,
};

/// Nobody answers for a moment when the only dispatcher takes another connection (50 to 150 ms) or is replaced by another.
const NOBODY: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// Where a request comes from, besides its subject.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    pub traceparent: Option<&'a str>,
    /// The token that a gateway was shown for it.
    pub token: Option<&'a TokenId>,
}

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

    /// Asks as [`Queue::ask`] does, in this role.
    pub async fn ask_as<Q: Serialize, R: DeserializeOwned>(
        &self,
        role: UserRole,
        verb: Verb,
        request: &Q,
        timeout: Duration,
    ) -> Result<R, QueueError> {
        self.request(&subjects::api(Door::Nats, self.tenant(), self.user(), role, verb), request, timeout).await
    }

    /// Sends a request and waits for the reply, at most `timeout`. Without a connection it waits for one first, so that
    /// nothing is sent after the caller gave up.
    pub async fn request<Q: Serialize, R: DeserializeOwned>(
        &self,
        subject: &str,
        request: &Q,
        timeout: Duration,
    ) -> Result<R, QueueError> {
        self.request_from(subject, request, timeout, Origin::default()).await
    }

    /// Sends a request as [`Queue::request`] does, with where it comes from in its headers.
    pub async fn request_from<Q: Serialize, R: DeserializeOwned>(
        &self,
        subject: &str,
        request: &Q,
        timeout: Duration,
        origin: Origin<'_>,
    ) -> Result<R, QueueError> {
        let mut outgoing = Outgoing { payload: encode(subject, request)?, headers: self.headers(subject, origin) };
        let is_large = self.check_size(subject, outgoing.payload.len()).is_err();
        if is_large && subjects::pieces_beside(subject).is_some() {
            let payload =
                self.put_pieces(subject, &outgoing.payload, Instant::now() + BODY_TIMEOUT.max(timeout)).await?;
            outgoing.payload = Bytes::new();
            outgoing.headers.insert(subjects::PAYLOAD, payload.to_string());
        }
        let reply = self.send_request(subject, outgoing, timeout).await?;
        let Some(payload) = payload_of(reply.headers.as_ref()) else { return decode_reply(subject, &reply) };
        let body = self.fetch_payload(subject, payload, BODY_TIMEOUT.max(timeout)).await?;
        decode_reply(subject, &Message { payload: body, ..reply })
    }

    pub(crate) async fn send_request(
        &self,
        subject: &str,
        outgoing: Outgoing,
        timeout: Duration,
    ) -> Result<Message, QueueError> {
        let deadline = Instant::now() + timeout;
        self.connected(timeout).await?;
        self.check_size(subject, outgoing.payload.len())?;
        let patient = deadline.min(Instant::now() + NOBODY);
        loop {
            let (payload, headers) = (outgoing.payload.clone(), outgoing.headers.clone());
            match Box::pin(self.send_once(subject, Outgoing { payload, headers }, deadline, timeout)).await {
                // Nobody has it, so it may be sent again.
                Err(QueueError::NoResponders { .. }) if Instant::now() + PAUSE < patient => {
                    tokio::time::sleep(PAUSE).await;
                }
                done => return done,
            }
        }
    }

    async fn send_once(
        &self,
        subject: &str,
        outgoing: Outgoing,
        deadline: Instant,
        timeout: Duration,
    ) -> Result<Message, QueueError> {
        let mut request = async_nats::Request::new().payload(outgoing.payload).timeout(None);
        if !outgoing.headers.is_empty() {
            request = request.headers(outgoing.headers);
        }
        let refused = self.inner.refusals.of(subject);
        let live = self.live();
        let answer = live.client.send_request(subject.to_owned(), request);
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

    fn headers(&self, subject: &str, Origin { traceparent, token }: Origin<'_>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        // The replies to workers are small: they fetch what is not.
        if subjects::caller(subject).is_some() {
            headers.insert(subjects::TAKES_PAYLOADS, "1");
        }
        if let Some(traceparent) = traceparent.and_then(traceparent::read) {
            headers.insert(subjects::TRACEPARENT, traceparent);
        }
        if let Some(said) = self.said() {
            headers.insert(subjects::CONTRACT, said);
        }
        if let Some(token) = token {
            headers.insert(subjects::TOKEN, token.as_str());
        }
        headers
    }
}

pub(crate) struct Outgoing {
    pub(crate) payload: Bytes,
    pub(crate) headers: HeaderMap,
}

impl<B: Into<Bytes>> From<B> for Outgoing {
    fn from(payload: B) -> Self {
        Self { payload: payload.into(), headers: HeaderMap::new() }
    }
}

pub(crate) fn decode_reply<R: DeserializeOwned>(subject: &str, reply: &Message) -> Result<R, QueueError> {
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
