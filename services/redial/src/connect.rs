//! Connections of commands to the servers, and the requests that they send.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use redial_backoff::{Backoff, Waits};
use redial_proto::{ApiError, Code, DispatcherHealth, SubmitResult, UserRole, subjects::Verb};
use redial_queue::{Queue, QueueError};
use redial_store::{Purpose, Store, StoreConfig};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{output, settings::Settings};

/// Longest wait for a server that does not answer.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest wait for an answer that only helps to explain something.
const LOOK: Duration = Duration::from_secs(2);
/// Longest wait for the first reply to a request: it takes milliseconds, unless the request was lost with a dispatcher's connection.
const FIRST_REPLY: Duration = Duration::from_secs(1);
/// Wait before a request is sent a second time.
const AGAIN: Duration = Duration::from_millis(500);
/// Longest wait for the reply to one request.
pub(crate) const REQUEST: Duration = Duration::from_secs(10);
/// Longest outage of the dispatchers that a command with many requests waits for.
const OUTAGE: Duration = Duration::from_mins(2);
/// Waits between the retries of a request.
const RETRY: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

/// What to do when nobody answers requests.
pub(crate) const NO_DISPATCHER: &str = "no dispatcher is running: NATS answers, but nobody serves requests. Start one: `redial dev` (everything on this \
     machine) or `redial dispatcher`";
/// What a shell says of a program that Ctrl-C or SIGTERM ended.
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;
/// What `redial dev` and a dispatcher say after the first Ctrl-C.
pub(crate) const STOPPING: &str = "stopping once the running calls have ended; Ctrl-C again ends at once";
pub(crate) const STOPPING_WORKER: &str =
    "stopping once the running calls have ended; Ctrl-C again stops them and gives them back";
pub(crate) const STOPPING_GATEWAY: &str = "stopping once the running requests have ended; Ctrl-C again ends at once";

/// Connects to NATS; fails instead of retrying without end, and says why.
pub(crate) async fn queue(settings: &Settings) -> anyhow::Result<Queue> {
    queue_within(settings, CONNECT).await
}

/// Connects with another limit.
pub(crate) async fn queue_within(settings: &Settings, limit: Duration) -> anyhow::Result<Queue> {
    let config = settings.queue("redial-cli")?;
    Queue::connect_within(&config, limit).await.map_err(|error| match error {
        error if error.is_retryable() => unreachable(&error.to_string()),
        error => error.into(),
    })
}

/// Connects to Postgres, to read records.
pub(crate) async fn store(settings: &Settings) -> anyhow::Result<Store> {
    let url = settings.database_url()?;
    let address = url.rsplit_once('@').map_or(url.as_str(), |(_, address)| address).to_owned();
    let config = StoreConfig { url, connections: 2, purpose: Purpose::Audit };
    match tokio::time::timeout(CONNECT, Store::connect(&config)).await {
        Ok(store) => Ok(store?),
        Err(_) => Err(unreachable(&format!("Postgres does not answer at {address}"))),
    }
}

fn unreachable(why: &str) -> anyhow::Error {
    let message = format!("{why}; is it running? `redial dev` starts everything on this machine");
    ApiError::new(Code::Unavailable, message).into()
}

pub(crate) async fn dispatcher_health(queue: &Queue) -> Result<DispatcherHealth, QueueError> {
    queue.ask(Verb::Health, &serde_json::json!({}), LOOK).await
}

/// Tells a user who reads records that nobody keeps them up to date. Says nothing if NATS cannot be asked.
pub(crate) async fn note_missing_dispatcher(settings: &Settings) {
    let Ok(queue) = queue_within(settings, LOOK).await else { return };
    if matches!(dispatcher_health(&queue).await, Err(QueueError::NoResponders { .. })) {
        output::note(format!("{NO_DISPATCHER}. This is what was known when the last one stopped"));
    }
}

/// Sends a request, a second time if the first reply did not come and the verb is idempotent.
pub(crate) async fn request<R: DeserializeOwned>(
    queue: &Queue,
    verb: Verb,
    request: &impl Serialize,
) -> Result<R, QueueError> {
    request_as(queue, verb.roles()[0], verb, request).await
}

/// Sends in this role.
pub(crate) async fn request_as<R: DeserializeOwned>(
    queue: &Queue,
    role: UserRole,
    verb: Verb,
    request: &impl Serialize,
) -> Result<R, QueueError> {
    // Asked twice, these would send two pings, or answer that there is nothing to delete.
    if matches!(verb, Verb::WebhookTest | Verb::WebhookDelete | Verb::ToolForget) {
        return queue.ask_as(role, verb, request, REQUEST).await;
    }
    match queue.ask_as(role, verb, request, FIRST_REPLY).await {
        Err(error) if error.is_retryable() => {
            tracing::debug!(%error, verb = verb.name(), "Request failed; trying again");
            tokio::time::sleep(AGAIN).await;
            queue.ask_as(role, verb, request, REQUEST).await
        }
        done => done,
    }
}

/// How many requests of one command wait for the end of an outage: the first of them tells the user.
#[derive(Clone, Default)]
pub(crate) struct Outages(Arc<AtomicUsize>);

impl Outages {
    pub(crate) fn of_request(&self) -> Outage {
        Outage { began: Instant::now(), waits: RETRY.waits(), is_waiting: false, all: self.clone() }
    }
}

pub(crate) struct Outage {
    began: Instant,
    waits: Waits,
    is_waiting: bool,
    all: Outages,
}

impl Outage {
    /// Makes the waits of a command that sends one request at a time.
    pub(crate) fn new() -> Self {
        Outages::default().of_request()
    }

    /// Waits before the next retry; fails with the request's error after [`OUTAGE`].
    pub(crate) async fn wait(&mut self, error: ApiError) -> Result<(), ApiError> {
        if self.began.elapsed() > OUTAGE {
            return Err(error);
        }
        if self.begins() {
            output::note(format!("{}; trying again for up to {} s", error.message, OUTAGE.as_secs()));
        }
        tokio::time::sleep(self.waits.next_wait()).await;
        Ok(())
    }

    /// Returns true if this is the request's first failure, and no other one waits.
    fn begins(&mut self) -> bool {
        !std::mem::replace(&mut self.is_waiting, true) && self.all.0.fetch_add(1, Ordering::Relaxed) == 0
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        if self.is_waiting {
            self.all.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Returns true if a part of a request failed for a reason that passes.
pub(crate) fn is_retryable(result: &SubmitResult) -> bool {
    result.error.as_ref().is_some_and(|error| error.code.is_retryable())
}

/// Returns the error of a request as users get it.
pub(crate) fn api(error: QueueError) -> anyhow::Error {
    user_error(error).into()
}

/// Returns the error of a request in the user's terms: who does not answer, rather than on which subject.
pub(crate) fn user_error(error: QueueError) -> ApiError {
    match error {
        QueueError::NoResponders { .. } => ApiError::new(Code::Unavailable, NO_DISPATCHER),
        QueueError::Timeout { after, .. } => {
            let message = format!(
                "no answer within {} s; the servers or the dispatcher are overloaded or stopped: see `redial health`",
                after.as_secs()
            );
            ApiError::new(Code::Unavailable, message)
        }
        error => error.into_api(),
    }
}

/// What to do about an id that is not on record; a line of its own, since one with the id would be too long.
pub(crate) const FIND: &str = "see redial tasks and redial history; retention deletes old ones,\nand others may have been erased: redial forget --list";

pub(crate) fn not_found(id: Uuid) -> anyhow::Error {
    ApiError::new(Code::CallNotFound, format!("no task or call {id} is on record\n{FIND}")).into()
}

pub(crate) fn task_not_found(id: Uuid) -> anyhow::Error {
    ApiError::new(Code::TaskNotFound, format!("no task {id} is on record\n{FIND}")).into()
}

/// Returns a token that Ctrl-C and SIGTERM cancel.
pub(crate) fn shutdown() -> anyhow::Result<CancellationToken> {
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

/// Returns a token of a role, which finishes its work after the first signal, and after Ctrl-C says so. A second one,
/// whichever of the two, cancels `kill`, which ends the grace of a worker: what still runs is stopped and given back.
/// The next one, or without `kill` the second, ends the process at once. Nothing on record is lost by that; what runs
/// counts as lost, as after a crash.
pub(crate) fn shutdown_sooner_if_repeated(
    stopping: &'static str,
    kill: Option<CancellationToken>,
) -> anyhow::Result<CancellationToken> {
    let token = CancellationToken::new();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let cancel = token.clone();
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = interrupt.recv() => INTERRUPTED,
                _ = terminate.recv() => TERMINATED,
            }
        };
        let first = next().await;
        cancel.cancel();
        if first == INTERRUPTED {
            output::note(stopping);
        }
        let mut last = next().await;
        if let Some(kill) = kill {
            kill.cancel();
            output::note("stopping what still runs");
            last = next().await;
        }
        output::note("stopped at once");
        std::process::exit(last);
    });
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_requests_in_an_outage_the_first_tells_the_user() {
        let outages = Outages::default();
        let (mut first, mut second) = (outages.of_request(), outages.of_request());
        assert!(first.begins());
        assert!(!first.begins() && !second.begins());
        drop(first);
        assert!(!outages.of_request().begins(), "the second one still waits");
        drop(second);
        assert!(outages.of_request().begins(), "a later outage");
    }
}
