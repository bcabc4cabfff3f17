//! Watches the streams: creates them again when their store was wiped, and then publishes the unclaimed jobs again.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chrono::DateTime;
use redial_engine::{outage::Observation, publish::MOST_REPUBLISHED};
use redial_queue::QueueError;
use redial_store::{StoreError, Time};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{context::Context, error::DispatcherError, wait::until};

/// Jobs that were published this long before the last look that succeeded may have been lost.
const MARGIN: Duration = Duration::from_secs(10);

/// Creates what is missing, before any request is answered.
pub(crate) async fn prepare(context: &Context) -> Result<(), DispatcherError> {
    context.queue.ensure_streams().await?;
    ensure_pools(context).await?;
    Ok(())
}

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let mut known = Known::default();
    loop {
        let began = context.uptime();
        let looked = look(&context, &mut known).await;
        context.observe(Observation::LookEnded { began, failed: looked.is_err() });
        if let Err(error) = looked {
            known.failed = true;
            tracing::warn!(%error, "Failed to check the streams");
        }
        if until(&shutdown, sleep(context.look_interval())).await.is_none() {
            return;
        }
    }
}

/// The results of the last checks.
#[derive(Default)]
struct Known {
    /// When the job stream was created.
    created: Option<Time>,
    /// When the last look succeeded, by the database's clock.
    succeeded_at: Option<Time>,
    /// The last look failed.
    failed: bool,
}

async fn look(context: &Context, known: &mut Known) -> Result<(), DispatcherError> {
    let streams = context.queue.ensure_streams().await?;
    ensure_pools(context).await?;
    let now = context.store.now().await?;
    if known.created != Some(streams.jobs_created) {
        // Whatever was published before the stream began is not on it. At a start this finds a store that was wiped
        // while no dispatcher ran.
        let lost_until = if known.created.is_some() { now } else { streams.jobs_created };
        wake(context, DateTime::UNIX_EPOCH, lost_until, "the job stream is new").await?;
        known.created = Some(streams.jobs_created);
    } else if known.failed {
        let from = known.succeeded_at.map_or(DateTime::UNIX_EPOCH, |succeeded_at| succeeded_at - MARGIN);
        wake(context, from, now, "NATS is back").await?;
    }
    known.failed = false;
    known.succeeded_at = Some(now);
    Ok(())
}

async fn wake(context: &Context, from: Time, until: Time, reason: &str) -> Result<(), StoreError> {
    let calls = context.store.wake_unclaimed(from, until, MOST_REPUBLISHED).await?;
    if calls > 0 {
        tracing::warn!(calls, reason, "Publishing unclaimed jobs again");
        context.due.notify_one();
    }
    Ok(())
}

async fn ensure_pools(context: &Context) -> Result<(), QueueError> {
    let tools = context.registry.tools();
    let pools: BTreeSet<&str> = tools.values().map(|tool| tool.spec.pool.as_str()).collect();
    for pool in pools {
        context.queue.ensure_pool(pool).await?;
        let backlog = context.queue.pool_backlog(pool).await?;
        // While a worker waits for jobs, pending ones are about to be delivered.
        context.set_queued(pool, backlog.pending > 0 && backlog.waiting_pulls == 0);
    }
    Ok(())
}
