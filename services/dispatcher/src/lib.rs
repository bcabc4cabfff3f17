//! The dispatcher: accepts submissions, grants claims, ingests reports, sweeps over what is due, publishes jobs.
//!
//! Any number of dispatchers run side by side; none holds state that another needs. Each verb has its file, by what it
//! is about: `calls`, `tasks`, `workers`. Every decision is the engine's: a verb reads records, lets the engine plan,
//! writes the transition, and hands its effects to `effects`, which alone carries them out. `intake` takes submissions
//! without a reply, `watch` notices streams that were lost, `retention` prunes what ended long ago.

mod agents;
mod batcher;
mod calls;
mod config;
mod context;
mod effects;
mod error;
mod intake;
mod publish;
mod registry;
mod retention;
mod running;
mod serve;
mod tasks;
mod transitions;
mod wait;
mod wake_set;
mod watch;
mod workers;

use redial_proto::subjects;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use crate::{config::DispatcherConfig, error::DispatcherError};

use crate::{
    context::Context,
    running::Running,
    wait::{retry_transient, until},
    workers::{claim, heartbeat, register, release},
};

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
    let tracker = TaskTracker::new();
    // Boxed, because the start would make this future much larger than the rest of its life needs.
    let connecting = Box::pin(Context::connect(config, &tracker));
    let Some(context) = until(&shutdown, connecting).await.transpose()? else { return Ok(()) };
    let Some(prepared) = until(&shutdown, retry_transient(|| watch::prepare(&context))).await else { return Ok(()) };
    prepared?;
    let running = Running { context, shutdown, tracker };
    serve_requests(&running).await?;
    start_loops(&running);
    // A server works off a connection in order: once it answers this, it knows all our subscriptions.
    if let Err(error) = running.context.queue.health().await {
        tracing::warn!(%error, "NATS did not answer; requests will be served once it does");
    }
    tracing::info!("Dispatcher started");
    ready();
    running.shutdown.cancelled().await;
    tracing::info!("Dispatcher received the shutdown; finishing started work");
    finish(running).await;
    Ok(())
}

async fn serve_requests(running: &Running) -> Result<(), DispatcherError> {
    calls::submit::start(running).await?;
    tasks::submit::start(running).await?;
    claim::start(running).await?;
    serve::each(running, subjects::REGISTER, register::register).await?;
    serve::each(running, subjects::HEARTBEAT, heartbeat::heartbeat).await?;
    serve::each(running, subjects::RELEASE, release::answer).await?;
    serve::each(running, subjects::GET, calls::get::get).await?;
    serve::each(running, subjects::CANCEL, calls::cancel::cancel).await?;
    serve::each(running, subjects::REDRIVE, calls::redrive::redrive).await?;
    serve::each(running, subjects::TASK_GET, tasks::get::get).await?;
    serve::each(running, subjects::TASK_CANCEL, tasks::cancel::cancel).await?;
    Ok(register::listen_for_changes(running).await?)
}

fn start_loops(running: &Running) {
    tasks::advance::start(running);
    running.spawn(intake::run);
    running.spawn(calls::ingest::run);
    running.spawn(calls::sweep::run);
    running.spawn(watch::run);
    running.spawn(retention::run);
}

/// Waits for everything that has begun. Batchers end when the last handle of the context is gone.
async fn finish(running: Running) {
    let Running { context, tracker, .. } = running;
    let (queue, store) = (context.queue.clone(), context.store.clone());
    drop(context);
    tracker.close();
    tracker.wait().await;
    queue.flush().await;
    store.close().await;
}
