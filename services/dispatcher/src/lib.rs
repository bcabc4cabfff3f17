//! The dispatcher: accepts submissions, grants claims, takes results in, sweeps what is due, publishes jobs.
//!
//! Any number of dispatchers run side by side; none holds state that another needs. Each verb has its file: requests
//! of users are [`submit`], [`intake`], [`get`], [`cancel`], [`redrive`]; of workers [`register`], [`claim`],
//! [`renew`], [`release`], and their results [`ingest`]. [`sweep`] and [`watch`] act on time and on a lost stream.
//! What happens to a call is decided by `redial_engine` alone; [`decide`] translates between it and the tables.
//!
//! Tasks have verbs of their own: [`submit_task`], [`get_task`], [`cancel_task`]. [`advance`] lets them go on;
//! [`life`] translates for it between what came in and the engine, and [`replay`] does the same for what is on record.

mod accept;
mod accept_task;
mod advance;
mod agents;
mod cancel;
mod cancel_task;
mod claim;
mod config;
mod decide;
mod error;
mod get;
mod get_task;
mod heartbeat;
mod ingest;
mod intake;
mod lanes;
mod life;
mod pokes;
mod publish;
mod redrive;
mod register;
mod registry;
mod release;
pub mod replay;
mod resolve;
mod retention;
mod serve;
mod shared;
mod submit;
mod submit_task;
mod sweep;
mod watch;

use std::time::Duration;

use redial_proto::subjects;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use crate::{config::DispatcherConfig, error::DispatcherError};

use crate::shared::Shared;

/// Between two tries to start.
const PAUSE: Duration = Duration::from_millis(500);

/// Runs a dispatcher until `shutdown`, then finishes what it has begun. `ready` is called once it answers requests.
///
/// Fails only at the start: a wrong setting, tables that are not migrated, streams that are set up otherwise. Later
/// outages of Postgres and NATS are waited out.
pub async fn run(
    config: DispatcherConfig,
    shutdown: CancellationToken,
    ready: impl FnOnce(),
) -> Result<(), DispatcherError> {
    config.check()?;
    let tasks = TaskTracker::new();
    // Boxed, because the start would make this future much larger than the rest of its life needs.
    let connecting = Box::pin(Shared::connect(config, &tasks));
    let Some(shared) = until(&shutdown, connecting).await.transpose()? else { return Ok(()) };
    let Some(prepared) = until(&shutdown, patiently(|| watch::prepare(&shared))).await else { return Ok(()) };
    prepared?;
    submit::start(&shared, &tasks, &shutdown).await?;
    submit_task::start(&shared, &tasks, &shutdown).await?;
    claim::start(&shared, &tasks, &shutdown).await?;
    register::listen_for_changes(&shared, &tasks, &shutdown).await?;
    serve::each(&shared, subjects::REGISTER, &tasks, &shutdown, register::register).await?;
    serve::each(&shared, subjects::HEARTBEAT, &tasks, &shutdown, heartbeat::heartbeat).await?;
    serve::each(&shared, subjects::RELEASE, &tasks, &shutdown, release::answer).await?;
    serve::each(&shared, subjects::GET, &tasks, &shutdown, get::get).await?;
    serve::each(&shared, subjects::CANCEL, &tasks, &shutdown, cancel::cancel).await?;
    serve::each(&shared, subjects::REDRIVE, &tasks, &shutdown, redrive::redrive).await?;
    serve::each(&shared, subjects::TASK_GET, &tasks, &shutdown, get_task::get).await?;
    serve::each(&shared, subjects::TASK_CANCEL, &tasks, &shutdown, cancel_task::cancel).await?;
    advance::start(&shared, &tasks, &shutdown);
    tasks.spawn(intake::run(shared.clone(), shutdown.clone()));
    tasks.spawn(ingest::run(shared.clone(), shutdown.clone()));
    tasks.spawn(sweep::run(shared.clone(), shutdown.clone()));
    tasks.spawn(watch::run(shared.clone(), shutdown.clone()));
    tasks.spawn(retention::run(shared.clone(), shutdown.clone()));
    // A server works off a connection in order: once it answers this, it knows all our subscriptions.
    if let Err(error) = shared.queue.health().await {
        tracing::warn!(%error, "NATS does not answer; requests are taken once it is back");
    }
    tracing::info!("dispatcher is ready");
    ready();
    shutdown.cancelled().await;
    tracing::info!("dispatcher is stopping: finishing what it has begun");
    let (queue, store) = (shared.queue.clone(), shared.store.clone());
    drop(shared);
    tasks.close();
    tasks.wait().await;
    queue.flush().await;
    store.close().await;
    Ok(())
}

/// Does a part of the start again until it is done: the servers may go away at any time, also now.
async fn patiently<T, F>(work: impl Fn() -> F) -> Result<T, DispatcherError>
where
    F: Future<Output = Result<T, DispatcherError>>,
{
    loop {
        match work().await {
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "the dispatcher cannot start yet");
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}

/// The result of some work, or `None` if the shutdown came first. Only for work that may be dropped half-way.
async fn until<T>(shutdown: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = shutdown.cancelled() => None,
        done = work => Some(done),
    }
}
