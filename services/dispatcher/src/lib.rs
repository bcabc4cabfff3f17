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
    wait::{patiently, until},
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
    let Some(prepared) = until(&shutdown, patiently(|| watch::prepare(&context))).await else { return Ok(()) };
    prepared?;
    calls::submit::start(&context, &tracker, &shutdown).await?;
    tasks::submit::start(&context, &tracker, &shutdown).await?;
    claim::start(&context, &tracker, &shutdown).await?;
    register::listen_for_changes(&context, &tracker, &shutdown).await?;
    serve::each(&context, subjects::REGISTER, &tracker, &shutdown, register::register).await?;
    serve::each(&context, subjects::HEARTBEAT, &tracker, &shutdown, heartbeat::heartbeat).await?;
    serve::each(&context, subjects::RELEASE, &tracker, &shutdown, release::answer).await?;
    serve::each(&context, subjects::GET, &tracker, &shutdown, calls::get::get).await?;
    serve::each(&context, subjects::CANCEL, &tracker, &shutdown, calls::cancel::cancel).await?;
    serve::each(&context, subjects::REDRIVE, &tracker, &shutdown, calls::redrive::redrive).await?;
    serve::each(&context, subjects::TASK_GET, &tracker, &shutdown, tasks::get::get).await?;
    serve::each(&context, subjects::TASK_CANCEL, &tracker, &shutdown, tasks::cancel::cancel).await?;
    tasks::advance::start(&context, &tracker, &shutdown);
    tracker.spawn(intake::run(context.clone(), shutdown.clone()));
    tracker.spawn(calls::ingest::run(context.clone(), shutdown.clone()));
    tracker.spawn(calls::sweep::run(context.clone(), shutdown.clone()));
    tracker.spawn(watch::run(context.clone(), shutdown.clone()));
    tracker.spawn(retention::run(context.clone(), shutdown.clone()));
    // A server works off a connection in order: once it answers this, it knows all our subscriptions.
    if let Err(error) = context.queue.health().await {
        tracing::warn!(%error, "NATS does not answer; requests are served once it does");
    }
    tracing::info!("Dispatcher started");
    ready();
    shutdown.cancelled().await;
    tracing::info!("Dispatcher is stopping; finishing started work");
    let (queue, store) = (context.queue.clone(), context.store.clone());
    drop(context);
    tracker.close();
    tracker.wait().await;
    queue.flush().await;
    store.close().await;
    Ok(())
}
