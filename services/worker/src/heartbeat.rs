//! Renew: the heartbeat that keeps the leases, and the watch over those that ended.

use std::{sync::Arc, time::Duration};

use redial_proto::{ErrorClass, Failure, Heartbeat, HeartbeatReply, JobRef, subjects};
use redial_queue::QueueError;
use tokio::time::{Instant, MissedTickBehavior};

use crate::{
    held::Stopped,
    release::hand_back,
    shared::{Shared, margin},
};

/// Attempts in one message, 62 bytes each.
const CHUNK: usize = 10_000;
/// How often ended leases are looked for.
const WATCH: Duration = Duration::from_millis(100);
/// A heartbeat that failed is tried again after this part of the lease.
const RETRY_PART: u32 = 20;

/// Renews every third of the lease, when asked to, and right after a reconnection.
pub(crate) async fn renew(shared: Arc<Shared>) {
    let mut connections = shared.queue.connections();
    let (mut wait, mut failures) = (Duration::ZERO, 0);
    loop {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = shared.renew_now.notified() => {}
            Ok(()) = connections.changed() => {}
        }
        let lease = shared.lease();
        (wait, failures) = match beat(&shared, lease, failures).await {
            Ok(()) => (lease / 3, 0),
            Err(error) => {
                tracing::warn!("a heartbeat failed: {error}");
                (lease / RETRY_PART, failures + 1)
            }
        };
    }
}

/// Stops tools whose lease ended without a renewal: no dispatcher could be reached. When one can be again, it hears what
/// became of them, so that the outage burns no attempt of a tool that may run twice.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let mut ticks = tokio::time::interval(WATCH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let stopped = shared.held.expire(ticks.tick().await);
        for Stopped { grant, .. } in &stopped {
            tracing::error!(call = %grant.call, attempt = grant.attempt, "the lease ended; the tool was stopped");
        }
        if !stopped.is_empty() {
            let shared = Arc::clone(&shared);
            shared.claims.clone().spawn(async move {
                let why = "the lease ended while no dispatcher could be reached; the tool was stopped";
                hand_back(&shared, stopped, why).await;
            });
        }
    }
}

/// One heartbeat: at least one message, also when nothing runs.
async fn beat(shared: &Shared, lease: Duration, failures: u32) -> Result<(), QueueError> {
    let jobs = shared.held.jobs();
    let mut chunks = jobs.chunks(CHUNK);
    let mut chunk = chunks.next().unwrap_or_default();
    loop {
        renew_chunk(shared, chunk, lease, failures).await?;
        match chunks.next() {
            Some(next) => chunk = next,
            None => return Ok(()),
        }
    }
}

async fn renew_chunk(shared: &Shared, jobs: &[JobRef], lease: Duration, failures: u32) -> Result<(), QueueError> {
    let request = Heartbeat {
        worker: shared.id.clone(),
        running: jobs.to_vec(),
        slots: shared.slots,
        draining: shared.draining.is_cancelled(),
    };
    // Counted from before the message left: the dispatcher's lease can only end later.
    let sent = Instant::now();
    let reply: HeartbeatReply = shared.ask(subjects::HEARTBEAT, &request, failures).await?;
    obey(shared, jobs, &reply, sent + lease.saturating_sub(margin(lease)));
    Ok(())
}

fn obey(shared: &Shared, jobs: &[JobRef], reply: &HeartbeatReply, lease: Instant) {
    shared.held.renewed(jobs, lease);
    for job in &reply.lost {
        tracing::warn!(call = %job.call, attempt = job.attempt, "the lease was lost");
    }
    shared.forget(&reply.lost);
    cancel(shared, &reply.cancelled);
    if reply.register {
        shared.register_now.notify_one();
    }
}

/// The calls were cancelled: stops the tools that still run and says so.
pub(crate) fn cancel(shared: &Shared, jobs: &[JobRef]) {
    for stopped in jobs.iter().filter_map(|job| shared.held.stop(*job)) {
        tracing::info!(call = %stopped.grant.call, "cancelled; the tool was stopped");
        let failure = Failure::new(ErrorClass::Cancelled, "cancelled while it ran; the tool was stopped");
        shared.reports.send(stopped.grant.job_ref(), stopped.ran, Err(failure));
    }
}
