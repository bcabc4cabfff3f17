//! Watches the streams: creates them again when their store was wiped, and then publishes the unclaimed jobs again.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chrono::DateTime;
use redial_engine::{outage::Observation, publish::MAX_REPUBLISHED};
use redial_queue::QueueError;
use redial_records::Effect;
use redial_store::{StoreError, Time};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{context::Context, effects, error::DispatcherError, wait::until};

/// Jobs that were published this long before the last check that succeeded may have been lost.
const MARGIN: Duration = Duration::from_secs(10);

/// Creates what is missing, before any request is answered.
pub(crate) async fn prepare(context: &Context) -> Result<(), DispatcherError> {
    context.queue.ensure_streams().await?;
    ensure_pools(context).await?;
    Ok(())
}

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let mut last = LastCheck::default();
    loop {
        let began = context.uptime();
        let checked = check(&context, &mut last).await;
        context.observe(Observation::CheckEnded { began, failed: checked.is_err() });
        if let Err(error) = checked {
            last.failed = true;
            tracing::warn!(%error, "Failed to check the streams");
        }
        if until(&shutdown, sleep(context.check_interval())).await.is_none() {
            return;
        }
    }
}

/// The results of the last check.
#[derive(Default)]
struct LastCheck {
    /// When the job stream was created.
    created: Option<Time>,
    /// When the last check succeeded, by the database's clock.
    succeeded_at: Option<Time>,
    /// The last check failed.
    failed: bool,
}

async fn check(context: &Context, last: &mut LastCheck) -> Result<(), DispatcherError> {
    let streams = context.queue.ensure_streams().await?;
    ensure_pools(context).await?;
    let now = context.store.now().await?;
    if last.created != Some(streams.jobs_created) {
        // Whatever was published before the stream began is not on it. At a start this finds a store that was wiped
        // while no dispatcher ran.
        let lost_until = if last.created.is_some() { now } else { streams.jobs_created };
        wake(context, DateTime::UNIX_EPOCH, lost_until, "the job stream is new").await?;
        last.created = Some(streams.jobs_created);
    } else if last.failed {
        let from = last.succeeded_at.map_or(DateTime::UNIX_EPOCH, |succeeded_at| succeeded_at - MARGIN);
        wake(context, from, now, "the check before this one failed").await?;
    }
    last.failed = false;
    last.succeeded_at = Some(now);
    Ok(())
}

async fn wake(context: &Context, from: Time, until: Time, reason: &str) -> Result<(), StoreError> {
    let calls = context.store.wake_unclaimed(from, until, MAX_REPUBLISHED).await?;
    if calls > 0 {
        tracing::warn!(calls, reason, "Made unclaimed jobs due to be published again");
        effects::carry_out(context, vec![Effect::WakeSweeper]).await;
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
