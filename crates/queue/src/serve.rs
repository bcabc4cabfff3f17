//! Serves requests over core NATS, shared by a queue group.

use async_nats::{Client, HeaderMap, Subject, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use redial_proto::{ApiError, Door, limits, subjects};
use serde::Serialize;

use crate::{
    Queue, QueueError,
    publish::{encode, traceparent_of},
    version,
};

impl Queue {
    /// Subscribes to requests. Members of one group share them.
    pub async fn serve(&self, subject: &str, group: Option<&str>) -> Result<Requests, QueueError> {
        let client = &self.inner.client;
        let subscriber = match group {
            Some(group) => client.queue_subscribe(subject.to_owned(), group.to_owned()).await,
            None => client.subscribe(subject.to_owned()).await,
        };
        let subscriber = subscriber.map_err(|error| QueueError::nats(subject, &error))?;
        Ok(Requests { subscriber, queue: self.clone() })
    }
}

/// Requests as they arrive.
pub struct Requests {
    subscriber: Subscriber,
    queue: Queue,
}

impl Requests {
    /// The next request; `None` only after the connection was closed. Can be cancelled without loss.
    ///
    /// The server sends a reply with the rights of the dispatcher, wherever a request wants it. So a request that wants it
    /// anywhere but below its sender's own inbox is discarded.
    pub async fn next(&mut self) -> Option<Request> {
        loop {
            let message = self.subscriber.next().await?;
            if let Some(reply) = message.reply.as_ref().filter(|reply| !subjects::may_reply(&message.subject, reply)) {
                tracing::warn!(
                    subject = limits::shorten(&message.subject, 200),
                    reply = limits::shorten(reply, 200),
                    "Discarded a request whose reply subject is not below its sender's inbox"
                );
                continue;
            }
            return Some(Request {
                traceparent: traceparent_of(message.headers.as_ref()),
                door: door_of(message.headers.as_ref()),
                is_newer: version::is_newer(message.headers.as_ref()),
                payload: message.payload,
                subject: message.subject,
                reply: message.reply,
                queue: self.queue.clone(),
            });
        }
    }
}

/// One request.
pub struct Request {
    /// Its body.
    pub payload: Bytes,
    /// W3C trace context of the sender.
    pub traceparent: Option<String>,
    /// The way in, as the sender says.
    pub door: Door,
    /// Whether its sender is of a newer version of the contract: what cannot be read of it is not wrong.
    pub is_newer: bool,
    subject: Subject,
    reply: Option<Subject>,
    queue: Queue,
}

impl Request {
    /// The subject that it was sent to.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// True if a reply of so many bytes can be sent.
    pub fn can_reply(&self, bytes: usize) -> bool {
        self.queue.check_size(&self.subject, bytes).is_ok()
    }

    /// Sends the reply. One that is too large becomes an error instead; without a reply subject nothing is sent.
    pub async fn reply<T: Serialize>(&self, answer: &T) {
        let body = encode(&self.subject, answer).and_then(|body| {
            self.queue.check_size(&self.subject, body.len())?;
            Ok(body)
        });
        match body {
            Ok(body) => self.send(HeaderMap::new(), body).await,
            Err(error) => {
                tracing::error!(subject = %self.subject, %error, "Failed to encode a reply");
                Box::pin(self.reply_error(&error.into_api())).await;
            }
        }
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
        let client: &Client = &self.queue.inner.client;
        let sent = if headers.is_empty() {
            client.publish(reply.clone(), body).await
        } else {
            client.publish_with_headers(reply.clone(), headers, body).await
        };
        if let Err(error) = sent {
            tracing::warn!(subject = %self.subject, %error, "Failed to send a reply");
        }
    }
}

fn door_of(headers: Option<&HeaderMap>) -> Door {
    let said = headers.and_then(|headers| headers.get(subjects::DOOR));
    said.and_then(|said| said.as_str().parse().ok()).unwrap_or_default()
}
