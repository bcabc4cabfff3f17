//! Connecting, and what the connection tells about itself.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, connection::State, jetstream};
use tokio::sync::{Mutex, watch};

use crate::{
    QueueConfig, QueueError,
    backoff::{self, Step},
    pull::Puller,
};

/// How long the server may take to answer anything that is not said otherwise.
pub(crate) const ANSWER: Duration = Duration::from_secs(2);

/// A connection to NATS. Cheap to clone; all clones share the connection.
#[derive(Clone)]
pub struct Queue {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) client: Client,
    pub(crate) jetstream: jetstream::Context,
    /// Counts connections: changes when the connection was made anew.
    pub(crate) connections: watch::Receiver<u64>,
    dropped: Arc<AtomicU64>,
    /// Set when the last handle goes: the end of the connection is then no error.
    dropped_by_us: Arc<AtomicBool>,
    /// The long-lived pull of each pool.
    pub(crate) pullers: std::sync::Mutex<HashMap<String, Arc<Mutex<Puller>>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.dropped_by_us.store(true, Ordering::Relaxed);
    }
}

impl Queue {
    /// Connects. Tries for ever while the server cannot be reached, with jittered waits: bound it with your own timeout.
    /// Ends with an error only if trying again would not help: a wrong URL, credentials that the server refuses.
    pub async fn connect(config: &QueueConfig) -> Result<Self, QueueError> {
        let servers = config.servers()?;
        let watcher = Watcher::default();
        let address = config.address();
        let connect = || async {
            let options = options(config, &watcher).await.map_err(Step::permanent)?;
            options.connect(servers.as_slice()).await.map_err(|error| connect_error(&error, &address))
        };
        let report = |error: QueueError, wait: Duration| {
            tracing::warn!(%address, wait_ms = wait.as_millis(), "cannot connect to NATS, trying again: {error}");
        };
        let client = backoff::retry_notify(backoff::delays(), connect, report).await?;
        tracing::info!(%address, "connected to NATS");
        Ok(Self::new(client, &watcher))
    }

    fn new(client: Client, watcher: &Watcher) -> Self {
        // No limit of the library's own: tasks that each hold a part of the permits would wait for each other for ever.
        let jetstream = jetstream::ContextBuilder::new()
            .timeout(ANSWER)
            .ack_timeout(ANSWER)
            .max_ack_inflight(1_000_000)
            .build(client.clone());
        let inner = Inner {
            client,
            jetstream,
            connections: watcher.connections.subscribe(),
            dropped: Arc::clone(&watcher.dropped),
            dropped_by_us: Arc::clone(&watcher.dropped_by_us),
            pullers: std::sync::Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// True if there is a connection now.
    pub fn is_connected(&self) -> bool {
        self.inner.client.connection_state() == State::Connected
    }

    /// Waits until there is a connection, at most `timeout`.
    pub async fn connected(&self, timeout: Duration) -> Result<(), QueueError> {
        let wait = async {
            // Asked again and again, because the client tells "connected" a moment before its state says so.
            while !self.is_connected() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(timeout, wait).await.map_err(|_| QueueError::Disconnected)
    }

    /// Changes whenever the connection was made anew: subscriptions live on, but what was said meanwhile is lost.
    pub fn connections(&self) -> watch::Receiver<u64> {
        let mut connections = self.inner.connections.clone();
        connections.mark_unchanged();
        connections
    }

    /// Times that the client threw a message away because a subscriber of this process was too slow.
    pub fn dropped_messages(&self) -> u64 {
        self.inner.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything published so far is written to the socket.
    pub async fn flush(&self) {
        let flush = self.inner.client.flush();
        if !matches!(tokio::time::timeout(ANSWER, flush).await, Ok(Ok(()))) {
            tracing::warn!("NATS: could not flush what was published");
        }
    }

    /// One round trip to JetStream: says that connection, server and JetStream work now.
    pub async fn health(&self) -> Result<(), QueueError> {
        if !self.is_connected() {
            return Err(QueueError::Disconnected);
        }
        self.api::<serde_json::Value>("INFO", Vec::new()).await.map(|_| ())
    }
}

/// Listens to the connection's events.
#[derive(Clone)]
struct Watcher {
    connections: watch::Sender<u64>,
    dropped: Arc<AtomicU64>,
    was_connected: Arc<AtomicBool>,
    dropped_by_us: Arc<AtomicBool>,
}

impl Default for Watcher {
    fn default() -> Self {
        Self {
            connections: watch::Sender::new(0),
            dropped: Arc::default(),
            was_connected: Arc::default(),
            dropped_by_us: Arc::default(),
        }
    }
}

impl Watcher {
    fn on_event(&self, event: &Event) {
        match event {
            Event::Connected => {
                self.connections.send_modify(|count| *count += 1);
                if self.was_connected.swap(true, Ordering::Relaxed) {
                    tracing::info!("reconnected to NATS");
                }
            }
            Event::Disconnected => tracing::warn!("lost the connection to NATS, reconnecting"),
            Event::SlowConsumer(subscription) => {
                let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
                tracing::error!(subscription, dropped, "NATS: a subscriber was too slow, a message was dropped");
            }
            Event::Closed if self.dropped_by_us.load(Ordering::Relaxed) => {
                tracing::debug!("closed the connection to NATS");
            }
            Event::Closed => tracing::error!("the connection to NATS is closed for good"),
            Event::LameDuckMode | Event::Draining => tracing::info!("NATS: {event}"),
            Event::ServerError(_) | Event::ClientError(_) => tracing::warn!("NATS: {event}"),
        }
    }
}

async fn options(config: &QueueConfig, watcher: &Watcher) -> Result<ConnectOptions, QueueError> {
    let (events, was_connected) = (watcher.clone(), Arc::clone(&watcher.was_connected));
    let mut options = ConnectOptions::new()
        .name(&config.name)
        .ping_interval(Duration::from_secs(5))
        .connection_timeout(Duration::from_secs(5))
        .request_timeout(Some(ANSWER))
        .max_reconnects(None)
        .event_callback(move |event| {
            events.on_event(&event);
            std::future::ready(())
        })
        .reconnect_delay_callback(move |attempt| {
            // The loop in `connect` already waits between first attempts.
            if was_connected.load(Ordering::Relaxed) { backoff::reconnect_delay(attempt) } else { Duration::ZERO }
        });
    options = match config.login()? {
        Some((user, Some(password))) => options.user_and_password(user, password),
        Some((token, None)) => options.token(token),
        None => options,
    };
    if let Some(prefix) = &config.inbox_prefix {
        options = options.custom_inbox_prefix(prefix);
    }
    if let Some(path) = &config.credentials {
        let failed = |error: std::io::Error| QueueError::Credentials {
            path: path.display().to_string(),
            reason: error.to_string(),
        };
        options = options.credentials_file(path).await.map_err(failed)?;
    }
    Ok(options)
}

fn connect_error(error: &async_nats::ConnectError, address: &str) -> Step<QueueError> {
    let reason = error.to_string();
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            Step::permanent(QueueError::Refused { address: address.to_owned(), reason })
        }
        ConnectErrorKind::ServerParse => Step::permanent(QueueError::Url { url: address.to_owned(), reason }),
        _ => Step::transient(QueueError::nats(format!("NATS at {address}"), &reason)),
    }
}
