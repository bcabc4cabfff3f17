//! Takes messages from a pull consumer: never more than the caller asked for, and without losing any.
//!
//! One [`Puller`] keeps one inbox and at most one open pull request. The request stays open between calls of
//! [`Puller::next`], so a message that arrives late is returned by the next call. The server reports when a request has
//! expired. If that report does not arrive in time, the request was lost (killed server, wiped store; 2.9 does not answer
//! at all for a missing consumer), and the consumer is looked up before the next request. The inbox stays open until then,
//! because a client or a server that stood still makes requests late that are not lost.

use std::{collections::VecDeque, time::Duration};

use async_nats::{Message, StatusCode, Subscriber};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use crate::{Delivery, Queue, QueueError, connect::ANSWER};

/// How long the server keeps a pull request open. Short, because a lost request is noticed only afterwards.
const EXPIRES: Duration = Duration::from_secs(2);
/// How long after that the report of its end may take to arrive.
const GRACE: Duration = Duration::from_secs(1);
/// Of one pull request, at least one message. nats-server cuts a client off that has 64 MiB to read, whatever else comes on its connection.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// What the server says when the next message does not fit any more.
const FULL: &str = "Message Size Exceeds MaxBytes";
/// If more messages are waiting on the server, wait this long for them, so that batches are full under load.
const LINGER: Duration = Duration::from_millis(2);

/// Where to take messages from.
pub(crate) struct Source {
    pub(crate) stream: &'static str,
    pub(crate) consumer: String,
}

/// A long-lived pull on one consumer.
pub(crate) struct Puller {
    queue: Queue,
    source: Source,
    connections: watch::Receiver<u64>,
    inbox: Option<Inbox>,
    open: Option<Open>,
    /// Taken from the inbox and not yet returned.
    ready: VecDeque<Delivery>,
    /// The last request was lost: check that the consumer exists before the next one.
    suspect: bool,
    /// The server refused the last request; returned to the caller once.
    refusal: Option<QueueError>,
}

/// Where pulled messages arrive. Request `n` replies to `<prefix>.<n>`, so that the end of an old request can be told
/// from that of the open one.
struct Inbox {
    subscriber: Subscriber,
    prefix: String,
    requests: u64,
}

/// The request that the server may still serve.
struct Open {
    inbox: String,
    credit: usize,
    /// When the report of its end should have arrived.
    overdue: Instant,
}

impl Puller {
    pub(crate) fn new(queue: Queue, source: Source) -> Self {
        Self {
            connections: queue.connections(),
            queue,
            source,
            inbox: None,
            open: None,
            ready: VecDeque::new(),
            suspect: false,
            refusal: None,
        }
    }

    /// See [`crate::Jobs::pull`]. What it has taken is kept in `self`, so it may be dropped at any await.
    pub(crate) async fn next(&mut self, max: usize, wait: Duration) -> Result<Vec<Delivery>, QueueError> {
        let deadline = Instant::now() + wait;
        loop {
            self.collect();
            if !self.ready.is_empty() {
                self.linger(max).await;
                return Ok(self.take(max));
            }
            if let Some(refusal) = self.refusal.take() {
                return Err(refusal);
            }
            if max == 0 || Instant::now() >= deadline {
                return Ok(Vec::new());
            }
            if self.open.is_none() {
                self.request(max, deadline).await?;
            }
            self.receive(deadline).await?;
        }
    }

    /// Takes what arrives without a new request; never returns if none is open. Can be dropped at any await, too.
    pub(crate) async fn late(&mut self) -> Vec<Delivery> {
        loop {
            self.collect();
            if !self.ready.is_empty() {
                return self.take(usize::MAX);
            }
            if self.open.is_none() || self.receive(Instant::now() + EXPIRES).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits for the open request to end; returns what still arrived.
    pub(crate) async fn end(&mut self) -> Vec<Delivery> {
        let limit = Instant::now() + EXPIRES + GRACE;
        while self.open.is_some() && Instant::now() < limit && self.queue.is_connected() {
            if self.receive(limit).await.is_err() {
                break;
            }
        }
        let is_lost = self.inbox.is_some() && (self.open.is_some() || self.suspect);
        if is_lost
            && self.queue.is_connected()
            && let Err(error) = self.catch_up().await
        {
            tracing::debug!(consumer = %self.source.consumer, %error, "Ended while a pull request was lost");
        }
        self.forget_request();
        self.take(usize::MAX)
    }

    fn take(&mut self, max: usize) -> Vec<Delivery> {
        let count = max.min(self.ready.len());
        self.ready.drain(..count).collect()
    }

    /// Sends a pull request; fails if the consumer turns out to be missing.
    async fn request(&mut self, max: usize, deadline: Instant) -> Result<(), QueueError> {
        self.queue.connected(deadline.saturating_duration_since(Instant::now()).min(ANSWER)).await?;
        if self.suspect {
            self.catch_up().await?;
            if !self.ready.is_empty() {
                return Ok(());
            }
        }
        self.connections.borrow_and_update();
        let reply = self.reply_subject().await?;
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", self.source.stream, self.source.consumer);
        let request = format!(r#"{{"batch":{max},"max_bytes":{MAX_BYTES},"expires":{}}}"#, EXPIRES.as_nanos());
        let sent = self.queue.live().client.publish_with_reply(subject, reply.clone(), request.into()).await;
        sent.map_err(|error| QueueError::nats("pull", &error))?;
        self.open = Some(Open { inbox: reply, credit: max, overdue: Instant::now() + EXPIRES + GRACE });
        Ok(())
    }

    /// Looks the consumer up after a lost request. The server sends in order, so whatever it sent on that request before
    /// its answer is here, too; a client that stood still finds it late. Then the inbox can go: what the server would
    /// still send there stays on the stream.
    async fn catch_up(&mut self) -> Result<(), QueueError> {
        self.queue.check_consumer(self.source.stream, &self.source.consumer).await?;
        self.suspect = false;
        self.forget_request();
        Ok(())
    }

    async fn reply_subject(&mut self) -> Result<String, QueueError> {
        let inbox = if let Some(inbox) = &mut self.inbox {
            inbox
        } else {
            let client = &self.queue.live().client;
            let prefix = client.new_inbox();
            let subscriber = client.subscribe(format!("{prefix}.*")).await;
            let subscriber = subscriber.map_err(|error| QueueError::nats("pull", &error))?;
            self.inbox.insert(Inbox { subscriber, prefix, requests: 0 })
        };
        inbox.requests += 1;
        Ok(format!("{}.{}", inbox.prefix, inbox.requests))
    }

    /// Waits for one message, a reconnection, or the deadline.
    async fn receive(&mut self, deadline: Instant) -> Result<(), QueueError> {
        let (Some(inbox), Some(open)) = (&mut self.inbox, &self.open) else { return Ok(()) };
        let overdue = open.overdue;
        tokio::select! {
            message = inbox.subscriber.next() => {
                if let Some(message) = message {
                    self.accept(message);
                } else {
                    // The client failed; another one takes its place.
                    self.forget_request();
                    self.suspect = true;
                    return Err(QueueError::Disconnected);
                }
            }
            Ok(()) = self.connections.changed() => {
                tracing::debug!(consumer = %self.source.consumer, "Reconnected; sending a new pull request");
                self.forget_request();
            }
            () = tokio::time::sleep_until(overdue.min(deadline)) => {
                if Instant::now() >= overdue {
                    tracing::debug!(consumer = %self.source.consumer, "Lost a pull request");
                    self.open = None;
                    self.suspect = true;
                }
            }
        }
        Ok(())
    }

    /// Forgets the request, which the server may still know; without its inbox it can deliver nothing on it.
    fn forget_request(&mut self) {
        self.collect();
        self.open = None;
        self.inbox = None;
    }

    /// Takes everything that has arrived, without waiting.
    fn collect(&mut self) {
        while let Some(inbox) = &mut self.inbox {
            match inbox.subscriber.next().now_or_never() {
                Some(Some(message)) => self.accept(message),
                Some(None) | None => return,
            }
        }
    }

    /// Waits a moment for the rest of a batch, if more messages are waiting on the server.
    async fn linger(&mut self, max: usize) {
        let limit = Instant::now() + LINGER;
        while self.ready.len() < max
            && self.open.is_some()
            && self.ready.back().is_some_and(|delivery| delivery.pending > 0)
        {
            let Some(inbox) = &mut self.inbox else { return };
            match timeout_at(limit, inbox.subscriber.next()).await {
                Ok(Some(message)) => self.accept(message),
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn accept(&mut self, message: Message) {
        // Senders may write a status into what the stream stores. What a consumer delivers names its acknowledgement.
        let is_delivery = message.reply.as_deref().is_some_and(|reply| reply.starts_with("$JS.ACK."));
        match message.status.filter(|_| !is_delivery) {
            None | Some(StatusCode::OK) => self.accept_delivery(message),
            Some(StatusCode::IDLE_HEARTBEAT) => {}
            Some(status) => self.accept_end(&message, status),
        }
    }

    fn accept_delivery(&mut self, message: Message) {
        if let Some(open) = &mut self.open {
            open.credit = open.credit.saturating_sub(1);
            if open.credit == 0 {
                self.open = None;
            }
        }
        if let Some(delivery) = Delivery::from_message(message, &self.queue) {
            self.ready.push_back(delivery);
        } else {
            tracing::error!(consumer = %self.source.consumer, "NATS delivered a message without a reply subject");
        }
    }

    fn accept_end(&mut self, message: &Message, status: StatusCode) {
        if self.open.as_ref().is_none_or(|open| open.inbox != *message.subject) {
            return;
        }
        self.open = None;
        let what = format!("consumer {} of stream {}", self.source.consumer, self.source.stream);
        self.refusal = match status {
            StatusCode::TIMEOUT => None,
            _ if message.description.as_deref() == Some(FULL) => None,
            StatusCode::NO_RESPONDERS => Some(QueueError::Missing { name: what }),
            _ => Some(QueueError::nats(what, message.description.as_deref().unwrap_or("the pull was refused"))),
        };
        self.suspect = self.refusal.is_some();
    }
}
