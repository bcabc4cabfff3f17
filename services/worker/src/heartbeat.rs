//! Heartbeat: renews the leases, stops tools whose lease has expired, and gives up those that block their thread.

use std::{collections::HashSet, sync::Arc, time::Duration};

use redial_proto::{ErrorClass, Failure, GrantRef, Heartbeat, HeartbeatReply, subjects::ControlVerb};
use redial_queue::QueueError;
use tokio::time::{Instant, MissedTickBehavior};

use crate::{
    attempts::{OVERDUE, StoppedAttempt},
    cancel::cancel,
    release::release_stopped,
    state::{WorkerState, margin},
};

/// Grants in one heartbeat, 107 bytes each.
const CHUNK: usize = 8_000;
/// How often the worker looks for expired leases.
const EXPIRY_CHECK: Duration = Duration::from_millis(100);
/// A failed heartbeat is retried after this fraction of the lease.
const RETRY_PART: u32 = 20;

/// Sends a heartbeat every third of the lease, on request, and after a reconnection.
pub(crate) async fn run(state: Arc<WorkerState>) {
    let mut connections = state.queue.connections();
    let (mut wait, mut failures) = (Duration::ZERO, 0);
    loop {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = state.heartbeat_now.notified() => {}
            Ok(()) = connections.changed() => {}
        }
        let lease = state.lease();
        (wait, failures) = match beat(&state, failures).await {
            // It may say that leases are shorter now.
            Ok(()) => (state.lease() / 3, 0),
            Err(error) => {
                tracing::warn!(%error, "Failed to send a heartbeat");
                (lease / RETRY_PART, failures + 1)
            }
        };
    }
}

/// Stops tools whose lease expired because no dispatcher could be reached, except `unsafe` ones. The attempts are released once one can
/// be reached again, so that the outage uses up no attempt.
pub(crate) async fn stop_expired(state: Arc<WorkerState>) {
    let mut ticks = tokio::time::interval(EXPIRY_CHECK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = ticks.tick().await;
        report_overdue(&state, now);
        let stopped = state.attempts.expire(now);
        for StoppedAttempt { grant, .. } in &stopped {
            tracing::error!(call = %grant.call, attempt = grant.attempt, "Stopped an attempt because its lease expired");
        }
        if !stopped.is_empty() {
            let state = Arc::clone(&state);
            state.control_tasks.clone().spawn("release attempts", async move {
                let why = "the lease expired while no dispatcher could be reached; the tool was stopped";
                release_stopped(&state, stopped, why).await;
            });
        }
    }
}

/// Reports tools that block their thread past their timeout: they cannot be stopped, and their leases would be renewed for as
/// long as they block. Their permits stay taken.
fn report_overdue(state: &WorkerState, now: Instant) {
    for StoppedAttempt { grant, ran, .. } in state.attempts.overdue(now) {
        tracing::error!(
            call = %grant.call,
            attempt = grant.attempt,
            "Gave up on a tool that blocks its thread; it holds the thread and its permit until it returns"
        );
        let message = format!(
            "the tool had not ended {} s after its timeout: it blocks its thread, and may still be running",
            OVERDUE.as_secs()
        );
        state.reports.send(grant, ran.unwrap_or_default(), Err(Failure::new(ErrorClass::Timeout, message)), None);
    }
}

/// Sends one heartbeat, in at least one message even when nothing runs.
async fn beat(state: &WorkerState, failures: u32) -> Result<(), QueueError> {
    // Before the grants are read: they were held then.
    let (held_at, grants) = (state.database_time(), state.attempts.renewed());
    let mut chunks = grants.chunks(CHUNK);
    let mut chunk = chunks.next().unwrap_or_default();
    loop {
        let next = chunks.next();
        let request = Heartbeat {
            worker: state.id.clone(),
            running: chunk.to_vec(),
            slots: state.slots.all,
            draining: state.draining.is_cancelled(),
            held_at,
        };
        send(state, &request, failures).await?;
        match next {
            Some(next) => chunk = next,
            None => return Ok(()),
        }
    }
}

async fn send(state: &WorkerState, request: &Heartbeat, failures: u32) -> Result<(), QueueError> {
    // Taken before the request leaves, so the dispatcher's lease can only end later.
    let sent = Instant::now();
    let reply: HeartbeatReply = state.request(ControlVerb::Heartbeat, request, failures).await?;
    let lease = state.hear(reply.at, sent, reply.lease_ms);
    // The leases of the others stay as they are.
    let locked: HashSet<&GrantRef> = reply.locked.iter().collect();
    let renewed = request.running.iter().filter(|grant| !locked.contains(grant));
    state.attempts.renew(renewed, sent + lease.saturating_sub(margin(lease)));
    handle_reply(state, &reply);
    Ok(())
}

fn handle_reply(state: &WorkerState, reply: &HeartbeatReply) {
    for grant in &reply.lost {
        // An attempt that ended while the heartbeat was on its way is not held any more either, but nothing of it is lost.
        if state.attempts.stop(*grant).is_some() {
            tracing::warn!(call = %grant.call, attempt = grant.attempt, "Lost a lease; stopped its attempt");
        }
    }
    state.forget(&reply.lost);
    cancel(state, &reply.cancelled);
    if reply.register {
        state.register_now.notify_one();
    }
}
