//! Serves requests over core NATS, shared by a queue group.

use std::{collections::VecDeque, time::Duration};

use async_nats::{HeaderMap, Message, Subject, Subscriber};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use redial_proto::{ApiError, Payload, TokenId, limits, subjects};
use redial_shares::Share;
use serde::Serialize;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    Queue, QueueError,
    apart::payload_of,
    connect::ANSWER,
    publish::{encode, traceparent_of},
};

/// Requests that still come to a member that leaves its group: more than are ever on their way at a time.
const LAST_REQUESTS: u64 = 64;
/// Nothing is on its way to a member that got no request for so long.
const QUIET: Duration = Duration::from_millis(200);
/// How long a member that leaves waits for its last requests. Who gets fewer in this time has next to nothing on its way.
const LEAVE: Duration = Duration::from_secs(1);
/// How long the client may take for each step of that. It does nothing while it is not connected.
const UNSUBSCRIBE: Duration = Duration::from_secs(1);

impl Queue {
    /// Subscribes to requests. Members of one group share them.
    pub async fn serve(&self, subject: &str, group: Option<&str>) -> Result<Requests, QueueError> {
        let connects = self.connects();
        let subscriber = self.subscriber(subject, group).await?;
        let (subject, group) = (subject.to_owned(), group.map(str::to_owned));
        let (ready, stay) = (VecDeque::new(), Stay::Open);
        Ok(Requests { subscriber, queue: self.clone(), subject, group, connects, arrived: 0, ready, stay })
    }
}

/// Requests as they arrive.
pub struct Requests {
    subscriber: Subscriber,
    queue: Queue,
    subject: String,
    group: Option<String>,
    /// Which connection it subscribed on.
    connects: (u64, u64),
    /// How many the subscription has returned.
    arrived: u64,
    /// They had arrived when this member began to leave.
    ready: VecDeque<Message>,
    stay: Stay,
}

/// Whether a member stays in its group.
#[derive(Clone, Copy)]
enum Stay {
    Open,
    /// It takes its last requests, until then at most.
    Leaving(Instant),
    /// It has unsubscribed; the client reports that until then.
    Left(Instant),
}

impl Requests {
    /// Leaves the group: [`Requests::next`] still returns what is on its way here, within about a second, and then `None`.
    ///
    /// The client drops what arrives after it has unsubscribed, and its own drain does not wait for the server's answer. So the server
    /// is asked to send a number of requests more, after which both sides agree that no other comes. A server counts from the last
    /// connection on, and the client from the first: after a reconnection, and while there is no connection, only the drain is left,
    /// which may lose what is sent within one round trip.
    pub async fn leave(&mut self) {
        while let Some(Some(message)) = self.subscriber.next().now_or_never() {
            self.arrived += 1;
            self.ready.push_back(message);
        }
        if !self.queue.is_connected() || self.queue.connects() != self.connects {
            return self.unsubscribe().await;
        }
        let asked = timeout(UNSUBSCRIBE, self.subscriber.unsubscribe_after(self.arrived + LAST_REQUESTS)).await;
        let now = Instant::now();
        self.stay = if matches!(asked, Ok(Ok(()))) { Stay::Leaving(now + LEAVE) } else { Stay::Left(now) };
    }

    async fn unsubscribe(&mut self) {
        let asked = timeout(UNSUBSCRIBE, self.subscriber.drain()).await;
        let wait = if matches!(asked, Ok(Ok(()))) { UNSUBSCRIBE } else { Duration::ZERO };
        self.stay = Stay::Left(Instant::now() + wait);
    }

    async fn message(&mut self) -> Option<Message> {
        if let Some(message) = self.ready.pop_front() {
            return Some(message);
        }
        if let Stay::Leaving(until) = self.stay {
            if let Ok(message) = timeout_at(until.min(Instant::now() + QUIET), self.subscriber.next()).await {
                return message;
            }
            self.unsubscribe().await;
        }
        if let Stay::Left(until) = self.stay {
            return timeout_at(until, self.subscriber.next()).await.ok().flatten();
        }
        loop {
            if let Some(message) = self.subscriber.next().await {
                self.arrived += 1;
                return Some(message);
            }
            self.subscriber = self.queue.subscribe_again(&self.subject, self.group.as_deref()).await;
            (self.connects, self.arrived) = (self.queue.connects(), 0);
        }
    }

    /// Takes the next request; `None` only after [`Requests::leave`]. Can be cancelled without loss.
    ///
    /// The server sends a reply with the rights of the dispatcher, wherever a request wants it. So a request that wants
    /// it anywhere but below its sender's own inbox is discarded.
    pub async fn next(&mut self) -> Option<Request> {
        loop {
            let message = self.message().await?;
            if let Some(reply) = message.reply.as_ref().filter(|reply| !subjects::may_reply(&message.subject, reply)) {
                tracing::warn!(
                    subject = limits::shorten(&message.subject, 200),
                    reply = limits::shorten(reply, 200),
                    "Discarded a request whose reply subject is not below its sender's inbox"
                );
                continue;
            }
            let headers = message.headers.as_ref();
            return Some(Request {
                apart: payload_of(headers),
                takes_payloads: headers.is_some_and(|headers| headers.get(subjects::TAKES_PAYLOADS).is_some()),
                held: None,
                traceparent: traceparent_of(message.headers.as_ref()),
                token: token_of(message.headers.as_ref()),
                is_newer: self.queue.is_newer(message.headers.as_ref()),
                payload: message.payload,
                subject: message.subject,
                reply: message.reply,
                queue: self.queue.clone(),
            });
        }
    }
}

pub struct Request {
    pub payload: Bytes,
    /// Its body is not here, but in these pieces.
    pub apart: Option<Payload>,
    /// What is kept for as long as the request is there: the right to the memory of its body.
    pub held: Option<Share>,
    takes_payloads: bool,
    /// W3C trace context of the sender.
    pub traceparent: Option<String>,
    /// The token that a gateway was shown for it, as the sender says.
    pub token: Option<TokenId>,
    /// Whether its sender is of a newer version of the contract: what cannot be read of it is not wrong.
    pub is_newer: bool,
    subject: Subject,
    reply: Option<Subject>,
    queue: Queue,
}

impl Request {
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// True if a reply of so many bytes can be sent.
    pub fn can_reply(&self, bytes: usize) -> bool {
        self.queue.check_size(&self.subject, bytes).is_ok()
    }

    /// Sends the reply. One that is too large becomes an error instead; without a reply subject nothing is sent.
    pub async fn reply<T: Serialize>(&self, answer: &T) {
        if let Some(body) = self.reply_if_it_fits(answer).await {
            self.reply_too_large(body.len()).await;
        }
    }

    /// Sends the reply; or returns its body if that is too large for one message.
    pub async fn reply_if_it_fits<T: Serialize>(&self, answer: &T) -> Option<Bytes> {
        match encode(&self.subject, answer) {
            Ok(body) if !self.can_reply(body.len()) => return Some(body),
            Ok(body) => self.send(HeaderMap::new(), body).await,
            Err(error) => {
                tracing::error!(subject = %self.subject, %error, "Failed to encode a reply");
                Box::pin(self.reply_error(&error.into_api())).await;
            }
        }
        None
    }

    /// True if the sender can fetch a reply in pieces.
    pub const fn takes_payloads(&self) -> bool {
        self.takes_payloads
    }

    /// Replies that the reply is in these pieces.
    pub async fn reply_apart(&self, payload: Payload) {
        let mut headers = HeaderMap::new();
        headers.insert(subjects::PAYLOAD, payload.to_string());
        self.send(headers, Bytes::new()).await;
    }

    pub async fn reply_too_large(&self, bytes: usize) {
        let error = match self.queue.check_size(&self.subject, bytes) {
            Err(error) => error.into_api(),
            Ok(()) => return,
        };
        tracing::error!(subject = %self.subject, %error, "Refused to send a reply that is too large");
        Box::pin(self.reply_error(&error)).await;
    }

    /// Replies with an error: header [`subjects::ERROR`] carries the code.
    pub async fn reply_error(&self, error: &ApiError) {
        let mut headers = HeaderMap::new();
        headers.insert(subjects::ERROR, error.code.as_str());
        let fits = |body: &Bytes| self.queue.check_size(&self.subject, body.len()).is_ok();
        let body = encode(&self.subject, error).ok().filter(fits).unwrap_or_else(|| {
            Bytes::from_static(br#"{"code":"internal","message":"the error itself was too large to be sent"}"#)
        });
        self.send(headers, body).await;
    }

    async fn send(&self, headers: HeaderMap, body: Bytes) {
        let Some(reply) = &self.reply else { return };
        let (queue, reply) = (self.queue.clone(), reply.clone());
        let publish = async move || {
            let (client, reply, body) = (queue.live().client.clone(), reply.clone(), body.clone());
            if headers.is_empty() {
                client.publish(reply, body).await
            } else {
                client.publish_with_headers(reply, headers.clone(), body).await
            }
        };
        if publish().await.is_ok() {
            return;
        }
        // A client that failed takes nothing; another one takes its place. Others' replies must not wait for that.
        let (queue, subject) = (self.queue.clone(), self.subject.clone());
        tokio::spawn(async move {
            let connected = queue.connected(ANSWER).await.is_ok();
            if let Err(error) = publish().await {
                tracing::warn!(%subject, connected, %error, "Failed to send a reply");
            }
        });
    }
}

fn token_of(headers: Option<&HeaderMap>) -> Option<TokenId> {
    headers?.get(subjects::TOKEN)?.as_str().parse().ok()
}
