//! The dispatcher: accepts submissions, grants claims, ingests reports, sweeps over what is due, publishes jobs.
//!
//! Any number of dispatchers run side by side; none holds state that another needs. Each verb has its file, by what it
//! is about: `calls`, `tasks`, `workers`. Every decision is the engine's: a verb reads records, lets the engine plan,
//! writes the transition, and hands its effects to `effects`, which alone carries them out. `intake` takes submissions
//! without a reply, `watch` notices streams that were lost, `unreadable` sets aside what NATS cannot deliver, `bodies`,
//! `apart` and `pieces` carry what does not fit into one message, `partitions` makes tables for what will be written,
//! `retention` prunes what ended long ago, `roll_up` keeps the statistics, `lag` exports what waits, `redrives` runs ended
//! calls again by a filter, `lists` says what a tenant may use, `conversations` erases, `tokens` are for programs that come
//! over HTTP, `webhooks` delivers what ended.

mod actions;
mod agents;
mod apart;
mod aside;
mod asked;
mod batcher;
mod bodies;
mod calls;
mod config;
mod context;
mod conversations;
mod effects;
mod error;
mod feed;
mod feeder;
mod health;
mod intake;
mod lag;
mod left_bytes;
mod lists;
mod new_calls;
mod partitions;
mod pieces;
mod policies;
mod publish;
mod redrives;
mod registry;
mod retention;
mod roll_up;
mod running;
mod search;
mod serve;
mod tasks;
mod tokens;
mod transitions;
mod unreadable;
mod wait;
mod wake_set;
mod watch;
mod webhooks;
mod workers;

use std::time::Duration;

use redial_loops::Loops;
use redial_proto::subjects::{ControlVerb, Verb};
use redial_queue::Queue;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use crate::{
    agents::{AgentsFile, Reference, check_agent_file, check_agents_file},
    config::DispatcherConfig,
    error::DispatcherError,
};

use crate::{
    context::Context,
    running::Running,
    wait::{retry_transient, until},
    workers::{accept, claim, forget, heartbeat, register, release},
};

/// How long a dispatcher that cannot go on may take to finish what it has begun: others may wait for it.
const LAST: Duration = Duration::from_secs(15);

/// Runs a dispatcher until `shutdown`, then finishes what it has begun. `ready` is called once it answers requests.
///
/// Fails at the start: a wrong setting, tables that are not migrated, streams that are set up otherwise. Later outages of
/// Postgres and NATS are waited out. The only errors after the start are the panic of a background loop, a bug, and the end
/// of the NATS client: the process should end then, and be started again.
pub async fn run(
    config: DispatcherConfig,
    shutdown: CancellationToken,
    ready: impl FnOnce(),
) -> Result<(), DispatcherError> {
    run_with(config, shutdown, ready, start_loops).await
}

/// Does the same with other loops.
async fn run_with(
    config: DispatcherConfig,
    shutdown: CancellationToken,
    ready: impl FnOnce(),
    start_loops: impl FnOnce(&Running),
) -> Result<(), DispatcherError> {
    config.check()?;
    let loops = Loops::default();
    // Boxed, because the start would make this future much larger than the rest of its life needs.
    let connecting = Box::pin(Context::connect(config, &loops));
    let Some(context) = until(&shutdown, connecting).await.transpose()? else { return Ok(()) };
    let preparing = Box::pin(retry_transient(|| watch::prepare(&context)));
    let Some(prepared) = until(&shutdown, preparing).await else { return Ok(()) };
    prepared?;
    let feeds = TaskTracker::new();
    let running = Running { context, shutdown: shutdown.child_token(), loops: loops.clone(), feeds };
    serve_requests(&running).await?;
    running.feeds.close();
    start_loops(&running);
    // A server works off a connection in order: once it answers this, it knows all our subscriptions.
    for queue in running.context.queues() {
        if let Err(error) = queue.health().await {
            tracing::warn!(%error, "NATS did not answer; requests will be served once it does");
        }
    }
    tracing::info!("Dispatcher started");
    ready();
    let stopped = stop(running, &shutdown).await;
    loops.panic().map_or(stopped, |panic| Err(panic.into()))
}

/// Waits for the shutdown, or until the dispatcher cannot go on; then finishes what has begun.
async fn stop(running: Running, shutdown: &CancellationToken) -> Result<(), DispatcherError> {
    let (loops, stop) = (running.loops.clone(), running.shutdown.clone());
    // Only a new process can repair that.
    let stopped = until(shutdown, loops.panicked()).await.map_or(Ok(()), |panic| Err(panic.into()));
    if stopped.is_ok() {
        tracing::info!("Dispatcher received the shutdown; finishing started work");
    }
    stop.cancel();
    let given_up = async {
        if stopped.is_ok() {
            loops.panicked().await;
        }
        tokio::time::sleep(LAST).await;
    };
    tokio::select! {
        () = finish(running) => {}
        () = given_up => tracing::error!("Stopped before all started work was finished"),
    }
    stopped
}

async fn serve_requests(running: &Running) -> Result<(), DispatcherError> {
    calls::submit::start(running).await?;
    tasks::submit::start(running).await?;
    claim::start(running).await?;
    serve::workers(running, ControlVerb::Register, register::register).await?;
    serve::workers(running, ControlVerb::Heartbeat, heartbeat::heartbeat).await?;
    serve::workers(running, ControlVerb::Release, release::answer).await?;
    serve::users(running, Verb::CallGet, serve::SMALL, calls::get::get).await?;
    serve::actions(running, Verb::CallCancel, calls::cancel::cancel).await?;
    calls::answer::start(running).await?;
    serve::actions(running, Verb::CallRedrive, calls::redrive::redrive).await?;
    serve::actions(running, Verb::RedriveCreate, redrives::create).await?;
    serve::actions(running, Verb::RedriveCancel, redrives::cancel).await?;
    serve::users(running, Verb::ToolList, serve::SMALL, lists::tools).await?;
    serve::users(running, Verb::AgentList, serve::SMALL, lists::agents).await?;
    serve::actions(running, Verb::ToolForget, forget::forget).await?;
    serve::actions(running, Verb::ToolAccept, accept::accept).await?;
    serve::actions(running, Verb::WebhookCreate, webhooks::create::create).await?;
    serve::actions(running, Verb::WebhookUpdate, webhooks::update::update).await?;
    serve::actions(running, Verb::WebhookDelete, webhooks::delete::delete).await?;
    serve::actions(running, Verb::WebhookRotate, webhooks::rotate::rotate).await?;
    serve::actions(running, Verb::WebhookTest, webhooks::test::test).await?;
    serve::actions(running, Verb::TokenCreate, tokens::create::create).await?;
    serve::actions(running, Verb::TokenRevoke, tokens::revoke::revoke).await?;
    serve::users(running, Verb::TaskGet, serve::SMALL, tasks::get::get).await?;
    serve::actions(running, Verb::TaskCancel, tasks::cancel::cancel).await?;
    serve::users(running, Verb::ConversationForget, serve::SMALL, conversations::forget::conversation).await?;
    serve::users(running, Verb::TenantForget, serve::SMALL, conversations::forget::tenant).await?;
    health::start(running).await?;
    serve::users(running, Verb::Piece, pieces::MOST_BYTES, pieces::of_user).await?;
    serve::workers(running, ControlVerb::Piece, pieces::of_worker).await?;
    Ok(register::listen_for_changes(running).await?)
}

fn start_loops(running: &Running) {
    tasks::advance::start(running);
    running.spawn("take the intake", intake::run);
    let loops = running.loops.clone();
    running.spawn("ingest reports", |context, shutdown| calls::ingest::run(context, shutdown, loops));
    running.spawn("sweep calls", calls::sweep::run);
    running.spawn("feed the queue", feed::run);
    running.spawn("search the backlog", search::run);
    running.spawn("watch the streams", watch::run);
    running.spawn("set unreadable messages aside", unreadable::run);
    for _ in 0..bodies::AT_ONCE {
        running.spawn("put bodies together", pieces::run);
    }
    running.spawn("delete pieces that have expired", retention::expire_pieces);
    running.spawn("add partitions", partitions::run);
    running.spawn("clean up", retention::clean_up);
    running.spawn("prune", retention::run);
    running.spawn("roll up the statistics", roll_up::run);
    running.spawn("export the lag of the queue", lag::run);
    running.spawn("carry out redrives", redrives::run);
    running.spawn("carry out erasures", conversations::erase::run);
    running.spawn("follow ends for webhooks", webhooks::follow::run);
}

/// Waits for everything that has begun. Batchers end when the last handle of the context is gone.
async fn finish(running: Running) {
    let Running { context, loops, .. } = running;
    let (queues, store) = (context.queues().map(Queue::clone), context.store.clone());
    drop(context);
    loops.close();
    loops.wait().await;
    // A server may lose what it has not read of a connection that is closed. It works off a connection in order: once it
    // answers this, it has read all acknowledgements and replies.
    for queue in queues {
        if let Err(error) = queue.health().await {
            tracing::warn!(%error, "NATS did not answer; messages whose acknowledgements it lost will be delivered again");
        }
    }
    store.close().await;
}

#[cfg(test)]
mod tests {
    use redial_queue::QueueConfig;
    use redial_testkit::Servers;

    use super::*;

    #[tokio::test]
    async fn a_loop_that_panics_stops_the_dispatcher_with_an_error() {
        let servers = Servers::start().await;
        servers.create_database().await;
        let queue = QueueConfig { url: servers.nats_url().to_owned(), ..QueueConfig::default() };
        let config = DispatcherConfig::new(queue, servers.database_url());
        let broken = |running: &Running| {
            start_loops(running);
            running.spawn("broken", |_, _| async { panic!("on purpose") });
        };
        let stopped = run_with(config, CancellationToken::new(), || (), broken);
        let error = tokio::time::timeout(Duration::from_mins(1), stopped).await.expect("it stops").unwrap_err();
        assert!(matches!(&error, DispatcherError::Panicked(panic) if panic.name == "broken"), "{error}");
    }
}
