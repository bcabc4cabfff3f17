//! One message that was taken from a stream, and how it is answered.

use std::time::Duration;

use async_nats::{Message, Subject};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use redial_proto::Payload;

use crate::{Queue, apart::payload_of, connect::ANSWER, publish::traceparent_of};

/// One message of a stream. It is delivered again after the consumer's ack wait (30 s) unless it is answered.
pub struct Delivery {
    pub payload: Bytes,
    /// How often it was delivered, this time included. A restarted server may count from 1 again.
    pub delivered: u64,
    pub stream_sequence: u64,
    /// When the server stored it, by the server's clock.
    pub stored_at: DateTime<Utc>,
    /// Messages of the consumer that waited behind it.
    pub(crate) pending: u64,
    /// Its body is not here, but in these pieces.
    pub apart: Option<Payload>,
    is_newer: bool,
    traceparent: Option<String>,
    subject: Subject,
    reply: Subject,
    queue: Queue,
}

impl Delivery {
    /// Reads a message; `None` if it was not delivered by a consumer.
    pub(crate) fn from_message(message: Message, queue: &Queue) -> Option<Self> {
        let reply = message.reply?;
        let facts = Facts::parse(&reply)?;
        Some(Self {
            payload: message.payload,
            delivered: facts.delivered,
            stream_sequence: facts.stream_sequence,
            stored_at: DateTime::from_timestamp_nanos(facts.stored_at_ns),
            pending: facts.pending,
            apart: payload_of(message.headers.as_ref()),
            is_newer: queue.is_newer(message.headers.as_ref()),
            traceparent: traceparent_of(message.headers.as_ref()),
            subject: message.subject,
            reply,
            queue: queue.clone(),
        })
    }

    /// Returns the W3C trace context of the sender.
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }

    /// True if its sender is of a newer version of the contract: what cannot be read of it is not wrong.
    pub const fn is_newer(&self) -> bool {
        self.is_newer
    }

    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Acknowledges it: the stream removes it. If the answer is lost, it is delivered again.
    pub async fn ack(&self) {
        self.answer(Bytes::from_static(b"+ACK")).await;
    }

    /// Hands it back: it is delivered again after `delay`, perhaps to another client.
    pub async fn nak(&self, delay: Duration) {
        self.answer(format!(r#"-NAK {{"delay": {}}}"#, delay.as_nanos()).into()).await;
    }

    /// Discards it: it is never delivered again.
    pub async fn term(&self) {
        self.answer(Bytes::from_static(b"+TERM")).await;
    }

    /// Answers. An answer that is not sent is harmless: the message is delivered again and refused by Postgres.
    async fn answer(&self, answer: Bytes) {
        let live = self.queue.live();
        let publish = live.client.publish(self.reply.clone(), answer);
        match tokio::time::timeout(ANSWER, publish).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(subject = %self.subject, %error, "Failed to answer a message"),
            Err(_) => tracing::warn!(subject = %self.subject, "Failed to answer a message: NATS is not connected"),
        }
    }
}

/// The facts in the reply subject of a delivery.
#[derive(Debug, PartialEq, Eq)]
struct Facts {
    delivered: u64,
    stream_sequence: u64,
    stored_at_ns: i64,
    pending: u64,
}

impl Facts {
    /// Parses `$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<stored at, ns>.<pending>`, or the
    /// newer form with `<domain>.<account>` before the stream and an optional token behind (NATS ADR-15).
    fn parse(reply: &str) -> Option<Self> {
        let tokens: Vec<&str> = reply.strip_prefix("$JS.ACK.")?.split('.').collect();
        let numbers = match tokens.len() {
            7 => &tokens[2..],
            9 | 10 => &tokens[4..],
            _ => return None,
        };
        Some(Self {
            delivered: numbers[0].parse().ok()?,
            stream_sequence: numbers[1].parse().ok()?,
            stored_at_ns: numbers[3].parse().ok()?,
            pending: numbers[4].parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_reply_subject_are_read() {
        let wanted = Facts { delivered: 2, stream_sequence: 33, stored_at_ns: 1_700_000_000_000_000_001, pending: 9 };
        let numbers = "2.33.12.1700000000000000001.9";
        for reply in [
            format!("$JS.ACK.JOBS.default.{numbers}"),
            format!("$JS.ACK._.ACCOUNT.JOBS.default.{numbers}"),
            format!("$JS.ACK.hub.ACCOUNT.JOBS.default.{numbers}.x7"),
        ] {
            assert_eq!(Facts::parse(&reply).as_ref(), Some(&wanted), "{reply}");
        }
    }

    #[test]
    fn any_other_reply_subject_is_ignored() {
        for reply in ["", "_INBOX.a.b", "$JS.ACK.JOBS.default.1.2.3.4", "$JS.ACK.JOBS.default.a.b.c.d.e"] {
            assert_eq!(Facts::parse(reply), None, "{reply}");
        }
    }
}
