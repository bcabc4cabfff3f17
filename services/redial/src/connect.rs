//! Connections of commands to the servers, and the requests that they send.

use std::time::Duration;

use redial_backoff::{Backoff, Waits};
use redial_proto::{ApiError, Code, SubmitResult};
use redial_queue::{Queue, QueueError};
use redial_store::{Purpose, Store, StoreConfig};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::settings::Settings;

/// Longest wait for a server that does not answer.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest wait for the reply to one request.
pub(crate) const REQUEST: Duration = Duration::from_secs(10);
/// Longest outage of the dispatchers that a command with many requests waits for.
const OUTAGE: Duration = Duration::from_mins(2);
/// Waits between the retries of a request.
const RETRY: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

/// Connects to NATS; fails instead of retrying without end.
pub(crate) async fn queue(settings: &Settings) -> anyhow::Result<Queue> {
    let config = settings.queue("redial-cli")?;
    let address = config.address();
    match tokio::time::timeout(CONNECT, Queue::connect(&config)).await {
        Ok(queue) => Ok(queue?),
        Err(_) => Err(unreachable("NATS", &address)),
    }
}

/// Connects to Postgres, to read records.
pub(crate) async fn store(settings: &Settings) -> anyhow::Result<Store> {
    let url = settings.database_url()?;
    let address = url.rsplit_once('@').map_or(url.as_str(), |(_, address)| address).to_owned();
    let config = StoreConfig { url, connections: 2, purpose: Purpose::Audit };
    match tokio::time::timeout(CONNECT, Store::connect(&config)).await {
        Ok(store) => Ok(store?),
        Err(_) => Err(unreachable("Postgres", &address)),
    }
}

fn unreachable(server: &str, address: &str) -> anyhow::Error {
    let message =
        format!("{server} does not answer at {address}; is it running? `redial dev` starts everything on this machine");
    ApiError::new(Code::Unavailable, message).into()
}

/// Sends an idempotent request, a second time if the first reply did not come.
pub(crate) async fn request<R: DeserializeOwned>(
    queue: &Queue,
    subject: &str,
    request: &impl Serialize,
) -> Result<R, QueueError> {
    match queue.request(subject, request, REQUEST).await {
        Err(error) if error.is_retryable() => {
            tracing::warn!(%error, subject, "Request failed; trying again");
            queue.request(subject, request, REQUEST).await
        }
        done => done,
    }
}

/// Waits between the retries of a request during an outage.
pub(crate) struct Outage {
    began: Instant,
    waits: Waits,
}

impl Outage {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), waits: RETRY.waits() }
    }

    /// Waits before the next retry; fails with the request's error after [`OUTAGE`].
    pub(crate) async fn wait(&mut self, error: ApiError) -> Result<(), ApiError> {
        if self.began.elapsed() > OUTAGE {
            return Err(error);
        }
        tracing::warn!(%error, "Request failed; trying again");
        tokio::time::sleep(self.waits.next_wait()).await;
        Ok(())
    }
}

/// True if a part of a request failed for a reason that passes.
pub(crate) fn is_retryable(result: &SubmitResult) -> bool {
    result.error.as_ref().is_some_and(|error| error.code.is_retryable())
}

/// The error of a request as users get it.
pub(crate) fn api(error: QueueError) -> anyhow::Error {
    error.into_api().into()
}

/// What to do about an id that is not on record.
pub(crate) const FIND: &str = "redial tasks and redial history list what is; retention deletes what ended long ago";

/// The error for an id that neither a task nor a call has.
pub(crate) fn not_found(id: Uuid) -> anyhow::Error {
    ApiError::new(Code::CallNotFound, format!("no task or call {id} is on record; {FIND}")).into()
}

/// The error for an id that no task has.
pub(crate) fn task_not_found(id: Uuid) -> anyhow::Error {
    ApiError::new(Code::TaskNotFound, format!("no task {id} is on record; {FIND}")).into()
}

/// A token that Ctrl-C and SIGTERM cancel.
pub(crate) fn shutdown() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let token = CancellationToken::new();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let cancel = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        cancel.cancel();
    });
    Ok(token)
}
