//! Watches the streams: creates them again when their store was wiped, and then puts the unclaimed calls back into the
//! backlog.

use std::{sync::Arc, time::Duration};

use chrono::DateTime;
use redial_engine::{outage::Observation, publish::MAX_CHECK_MS};
use redial_queue::QueueError;
use redial_store::Time;
use redial_telemetry::metrics;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::{context::Context, error::DispatcherError, feed::look_at_workers, partitions, unreadable, wait::until};

/// Jobs that were published this long before the last check that succeeded may have been lost.
const MARGIN: Duration = Duration::from_secs(10);

/// Creates what is missing, before any request is answered.
pub(crate) async fn prepare(context: &Context) -> Result<(), DispatcherError> {
    partitions::add(&context.store, context.config.retention).await?;
    share_replicas(context).await?;
    context.queue.ensure_streams().await?;
    look_at_workers(context, true, Instant::now()).await?;
    // The sweeper must not end calls for an outage that is over.
    context.feeder.set_health(context.store.unwell_tools().await?);
    match ensure_consumers(context).await {
        Err(error) if !error.is_outage() => {
            tracing::warn!(%error, "Found a consumer that cannot be used; continuing with the others");
        }
        checked => checked?,
    }
    unreadable::set_aside(context).await;
    Ok(())
}

/// Puts the setting on record if there is one, and otherwise takes what is on record.
async fn share_replicas(context: &Context) -> Result<(), DispatcherError> {
    let Some(replicas) = context.config.nats_replicas else { return read_replicas(context).await };
    if replicas > 1 && !context.queue.is_in_cluster() {
        let what = "this NATS server is not a member of a cluster, so it can keep one replica only";
        return Err(DispatcherError::Setting(format!("nats_replicas is {replicas}: {what}; allowed here: 1")));
    }
    context.store.set_stream_replicas(replicas).await?;
    context.queue.set_replicas(replicas);
    Ok(())
}

/// Reads how many replicas are wanted: another dispatcher may have been started with another number.
async fn read_replicas(context: &Context) -> Result<(), DispatcherError> {
    if let Some(replicas) = context.store.stream_replicas().await? {
        context.queue.set_replicas(replicas);
    }
    Ok(())
}

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let mut last = LastCheck::default();
    loop {
        let began = context.uptime();
        let checked = check(&context, &mut last).await;
        // Trouble with one stream is no outage: workers are heard, and the leases of those that are not must end.
        let failed = checked.as_ref().is_err_and(DispatcherError::is_outage);
        context.observe(Observation::CheckEnded { began, failed });
        last.failed |= failed;
        if let Err(error) = checked {
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
    created: Option<Time>,
    /// When the last check succeeded, by the database's clock.
    succeeded_at: Option<Time>,
    failed: bool,
}

async fn check(context: &Context, last: &mut LastCheck) -> Result<(), DispatcherError> {
    let (streams, shared, heartbeats) = tokio::join!(
        context.queue.ensure_job_stream(),
        context.queue.ensure_shared_streams(),
        context.workers.health()
    );
    let streams = streams?;
    // A server that is silent on the workers' connection keeps their heartbeats from this dispatcher.
    heartbeats?;
    let consumers = ensure_consumers(context).await;
    let now = context.store.now().await?;
    context.observe_clock(now);
    read_replicas(context).await?;
    // What was published shortly before a check that failed may be lost, and whatever was published before the stream
    // began is not on it. The stream on record also tells of a store that was wiped while no dispatcher ran.
    let failed_after = last.succeeded_at.filter(|_| last.failed);
    if let Some(since) = context.store.adopt_job_stream(streams.jobs_created, failed_after).await? {
        let from = failed_after.filter(|_| last.created == Some(streams.jobs_created));
        let from = from.map_or(DateTime::UNIX_EPOCH, |succeeded_at| succeeded_at - MARGIN);
        let requeued = context.store.requeue_published(from, now, MAX_CHECK_MS).await?;
        context.store.job_stream_adopted(since).await?;
        if requeued > 0 {
            tracing::warn!(requeued, "Jobs may be lost; their calls wait in the backlog");
            metrics().jobs_requeued(requeued);
        }
        context.feeder.recheck();
    }
    if last.failed || last.created != Some(streams.jobs_created) {
        context.feeder.resume();
        context.feeder.recheck();
    }
    let checked = shared.and(consumers);
    let succeeded_at = if checked.as_ref().is_err_and(QueueError::is_outage) { last.succeeded_at } else { Some(now) };
    *last = LastCheck { created: Some(streams.jobs_created), succeeded_at, failed: false };
    Ok(checked?)
}

/// Checks all consumers, also after one that there is something wrong with.
async fn ensure_consumers(context: &Context) -> Result<(), QueueError> {
    let (mut checked, mut depths) = (Ok(()), Vec::new());
    for consumer in context.feeder.live() {
        match context.queue.ensure_jobs(&consumer).await {
            Ok(depth) => {
                context.feeder.set_depth(&consumer, depth);
                depths.push((consumer, depth));
            }
            Err(error) if error.is_outage() => return Err(error),
            Err(error) => checked = checked.and(Err(error)),
        }
    }
    context.feeder.look_for_stale(&context.queue.unclaimed_jobs().await?, &depths);
    checked
}
