//! The connection: how it is made, kept and observed.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, connection::State, jetstream};
use parking_lot::{Mutex, RwLock};
use redial_backoff::Backoff;
use redial_proto::{CONTRACT, Tenant, User};
use tokio::sync::watch;

use crate::{QueueConfig, QueueError, permissions::Refusals};

/// How long the server may take to answer, unless the caller sets another limit.
pub(crate) const ANSWER: Duration = Duration::from_secs(2);
/// Waits between attempts to reach a server. The cap is short, so that a returned server is noticed at once.
pub(crate) const RECONNECT: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

/// A client of this crate tries to reach a server that is back after at most this long.
pub const LONGEST_RECONNECT: Duration = RECONNECT.longest();

/// A connection to NATS. Cheap to clone; all clones share the connection.
#[derive(Clone)]
pub struct Queue {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    /// The client in use; another one takes its place when it fails.
    live: RwLock<Arc<Live>>,
    /// Counts connections: changes with every reconnection.
    pub(crate) connections: watch::Receiver<u64>,
    pub(crate) refusals: Refusals,
    /// Set when the last handle goes: the end of the connection is then no error.
    dropped_by_us: Arc<AtomicBool>,
    /// Sequence number of the job stream's last message when the streams were last checked; 0 before that.
    pub(crate) last_job: AtomicU64,
    /// Wanted replicas of each stream. 0: streams stay as they are, and new ones have one replica.
    pub(crate) replicas: AtomicU32,
    /// A stream could not get them, which is logged once.
    pub(crate) replicas_refused: AtomicBool,
    pub(crate) tenant: Tenant,
    pub(crate) user: User,
    pub(crate) contract: u32,
}

/// One client of the library, which reconnects by itself until it fails.
pub(crate) struct Live {
    pub(crate) client: Client,
    pub(crate) jetstream: jetstream::Context,
    /// How many there were before.
    number: u64,
    /// Its sender goes with the client's own task.
    task: watch::Receiver<()>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.dropped_by_us.store(true, Ordering::Relaxed);
    }
}

impl Queue {
    /// Connects. Tries until the server can be reached, with jittered waits: bound it with your own timeout. Fails only if
    /// trying again would not help: a wrong URL, credentials that the server refuses.
    pub async fn connect(config: &QueueConfig) -> Result<Self, QueueError> {
        let address = config.address();
        let report = |error: QueueError, wait: Duration| {
            tracing::warn!(%address, wait_ms = wait.as_millis(), %error, "Failed to connect to NATS; trying again");
        };
        Self::connect_and_report(config, report).await
    }

    /// Connects, but tries for so long only. The error is that of the last try, so it says why.
    pub async fn connect_within(config: &QueueConfig, limit: Duration) -> Result<Self, QueueError> {
        let last = Mutex::new(None);
        let keep = |error: QueueError, _| {
            *last.lock() = Some(error);
        };
        if let Ok(done) = tokio::time::timeout(limit, Self::connect_and_report(config, keep)).await {
            return done;
        }
        let last = last.lock().take();
        let what = format!("NATS at {}", config.address());
        Err(last.unwrap_or(QueueError::Timeout { what, after: limit }))
    }

    async fn connect_and_report(
        config: &QueueConfig,
        report: impl FnMut(QueueError, Duration),
    ) -> Result<Self, QueueError> {
        let watcher = Watcher::new(config);
        // Boxed, because it would make the futures of all callers large.
        let connect = || Live::connect(config, &watcher, 0);
        let live = Box::pin(RECONNECT.retry(connect, QueueError::is_retryable, report)).await?;
        tracing::info!(address = config.address(), "Connected to NATS");
        let queue = Self::new(live, config, &watcher);
        tokio::spawn(keep(Arc::downgrade(&queue.inner), config.clone(), watcher));
        Ok(queue)
    }

    fn new(live: Live, config: &QueueConfig, watcher: &Watcher) -> Self {
        let inner = Inner {
            live: RwLock::new(Arc::new(live)),
            connections: watcher.connections.subscribe(),
            refusals: watcher.refusals.clone(),
            dropped_by_us: Arc::clone(&watcher.dropped_by_us),
            last_job: AtomicU64::new(0),
            replicas: AtomicU32::default(),
            replicas_refused: AtomicBool::default(),
            tenant: config.tenant.clone(),
            user: config.user.clone(),
            contract: config.contract.unwrap_or(CONTRACT),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the tenant of the requests of this user.
    pub fn tenant(&self) -> &Tenant {
        &self.inner.tenant
    }

    pub fn user(&self) -> &User {
        &self.inner.user
    }

    pub(crate) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.inner.live.read())
    }

    pub fn is_connected(&self) -> bool {
        let live = self.live();
        // The state of a client that failed stays the last one.
        live.client.connection_state() == State::Connected && live.task.has_changed().is_ok()
    }

    /// Waits until there is a connection, at most `timeout`.
    pub async fn connected(&self, timeout: Duration) -> Result<(), QueueError> {
        let wait = async {
            // Polled, because the client's event precedes its state by a moment.
            while !self.is_connected() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(timeout, wait).await.map_err(|_| QueueError::Disconnected)
    }

    /// Watches the count of reconnections: subscriptions survive one, but messages published meanwhile are lost.
    pub fn connections(&self) -> watch::Receiver<u64> {
        let mut connections = self.inner.connections.clone();
        connections.mark_unchanged();
        connections
    }

    /// Returns which connection this is: the number of the client, and of its connections. Unlike
    /// [`Queue::connections`] it is never late.
    pub(crate) fn connects(&self) -> (u64, u64) {
        let live = self.live();
        (live.number, live.client.statistics().connects.load(Ordering::Relaxed))
    }

    /// Waits until everything published so far is written to the socket.
    pub async fn flush(&self) {
        let live = self.live();
        let flush = live.client.flush();
        if !matches!(tokio::time::timeout(ANSWER, flush).await, Ok(Ok(()))) {
            tracing::warn!("Failed to flush published messages to NATS");
        }
    }

    /// Makes one round trip to JetStream: succeeds if connection, server and JetStream work.
    pub async fn jetstream(&self) -> Result<(), QueueError> {
        if !self.is_connected() {
            return Err(QueueError::Disconnected);
        }
        self.api::<serde_json::Value>("INFO", Vec::new()).await.map(drop)
    }

    /// Checks JetStream; for a login that may not ask about it, connection and server.
    pub async fn health(&self) -> Result<(), QueueError> {
        match self.jetstream().await {
            // The server has answered.
            Err(QueueError::Forbidden { .. }) => Ok(()),
            done => done,
        }
    }
}

impl Live {
    async fn connect(config: &QueueConfig, watcher: &Watcher, number: u64) -> Result<Self, QueueError> {
        let (alive, task) = watch::channel(());
        let options = options(config, watcher, alive).await?;
        let client =
            options.connect(config.servers()?.as_slice()).await.map_err(|error| connect_error(&error, config))?;
        // The library's own limit is out of reach: tasks that each hold a part of its permits could deadlock.
        let jetstream = jetstream::ContextBuilder::new()
            .timeout(ANSWER)
            .ack_timeout(ANSWER)
            .max_ack_inflight(1_000_000)
            .build(client.clone());
        Ok(Self { client, jetstream, number, task })
    }
}

/// Puts another client in the place of one that failed, until the last handle of the queue is dropped. The library's client
/// reconnects after every outage, but its task panics at a message with a carriage return in a header (async-nats 0.51), which
/// nats-server lets pass. What was under way on its connection is lost, as in an outage.
async fn keep(inner: Weak<Inner>, config: QueueConfig, watcher: Watcher) {
    let mut failures = 0;
    while let Some((mut task, number)) = inner.upgrade().map(|inner| {
        let live = inner.live.read();
        (live.task.clone(), live.number)
    }) {
        while task.changed().await.is_ok() {}
        if inner.strong_count() == 0 {
            return;
        }
        tracing::error!("The NATS client failed, as it does at a message with a malformed header; connecting again");
        match Box::pin(Live::connect(&config, &watcher, number + 1)).await {
            Ok(live) => {
                let Some(inner) = inner.upgrade() else { return };
                *inner.live.write() = Arc::new(live);
                failures = 0;
            }
            Err(error) => {
                failures += 1;
                let wait = RECONNECT.after(failures);
                tracing::warn!(wait_ms = wait.as_millis(), %error, "Failed to connect to NATS; trying again");
                tokio::time::sleep(wait).await;
            }
        }
    }
}

/// Turns the connection's events into logs and counts.
#[derive(Clone)]
struct Watcher {
    connections: watch::Sender<u64>,
    refusals: Refusals,
    dropped: Arc<AtomicU64>,
    was_connected: Arc<AtomicBool>,
    dropped_by_us: Arc<AtomicBool>,
}

impl Watcher {
    fn new(config: &QueueConfig) -> Self {
        Self {
            connections: watch::Sender::new(0),
            refusals: Refusals::new(config.inbox_prefix.as_deref().unwrap_or("_INBOX")),
            dropped: Arc::default(),
            was_connected: Arc::default(),
            dropped_by_us: Arc::default(),
        }
    }

    fn on_event(&self, event: &Event) {
        match event {
            Event::Connected => {
                self.refusals.forget();
                self.connections.send_modify(|count| *count += 1);
                if self.was_connected.swap(true, Ordering::Relaxed) {
                    tracing::info!("Reconnected to NATS");
                }
            }
            Event::Disconnected => tracing::warn!("Lost the connection to NATS; reconnecting"),
            Event::SlowConsumer(subscription) => {
                let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
                tracing::error!(
                    subscription,
                    dropped,
                    "NATS client dropped a message because its subscriber was too slow"
                );
            }
            Event::Closed if self.dropped_by_us.load(Ordering::Relaxed) => {
                tracing::debug!("Closed the connection to NATS");
            }
            Event::Closed => tracing::error!("The connection to NATS was closed permanently"),
            Event::LameDuckMode | Event::Draining => tracing::info!(%event, "NATS server began to shut down"),
            Event::ServerError(_) | Event::ClientError(_) => {
                let event = event.to_string();
                self.refusals.note(&event);
                tracing::warn!(event, "NATS reported an error");
            }
        }
    }
}

/// Makes the options of one client, whose task holds `alive`.
async fn options(
    config: &QueueConfig,
    watcher: &Watcher,
    alive: watch::Sender<()>,
) -> Result<ConnectOptions, QueueError> {
    let (events, was_connected) = (watcher.clone(), Arc::clone(&watcher.was_connected));
    let mut options = ConnectOptions::new()
        .name(&config.name)
        .ping_interval(Duration::from_secs(5))
        .connection_timeout(Duration::from_secs(5))
        .request_timeout(Some(ANSWER))
        .max_reconnects(None)
        .event_callback(move |event| {
            let _alive = &alive;
            events.on_event(&event);
            std::future::ready(())
        })
        .reconnect_delay_callback(move |attempt| {
            // Before the first connection the loop in `connect` waits.
            let failures = u32::try_from(attempt).unwrap_or(u32::MAX);
            if was_connected.load(Ordering::Relaxed) { RECONNECT.after(failures) } else { Duration::ZERO }
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

fn connect_error(error: &async_nats::ConnectError, config: &QueueConfig) -> QueueError {
    let (reason, address) = (error.to_string(), config.address());
    // A user alone is a token, which is a secret.
    let user = || config.login().ok().flatten().and_then(|(user, password)| password.map(|_| user));
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            QueueError::Refused { address, user: user() }
        }
        ConnectErrorKind::ServerParse => QueueError::Url { url: address, reason },
        _ => QueueError::nats(format!("NATS at {address}"), &reason),
    }
}
