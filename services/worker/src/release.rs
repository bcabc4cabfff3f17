//! Release: returns attempts to the dispatchers, so that they do not count.

use std::time::Duration;

use redial_proto::{
    ErrorClass, Failure, GrantRef, ReleaseReply, ReleaseRequest, ToolEffect, limits::MAX_CLAIM, subjects::ControlVerb,
};
use tokio::time::Instant;

use crate::{
    attempts::StoppedAttempt,
    state::{WorkerState, is_permanent},
};

/// How long the processes of a stopped tool may take to end.
const STOP: Duration = Duration::from_secs(2);
/// The worker stops trying after this long; the attempt then counts as lost. After an outage the dispatchers wait for a
/// release as long as one lease.
const GIVE_UP: Duration = Duration::from_hours(1);
/// The same limit while the worker drains, because the process is about to end.
const GIVE_UP_DRAINING: Duration = Duration::from_secs(10);

/// Releases attempts that were stopped before their tools finished. An `unsafe` tool that had started may have had its effect, so
/// its attempt is reported as `lost` instead.
pub(crate) async fn release_stopped(state: &WorkerState, stopped: Vec<StoppedAttempt>, why: &str) {
    let mut grants = Vec::with_capacity(stopped.len());
    for StoppedAttempt { grant, effect, ran } in stopped {
        match ran.filter(|_| effect == ToolEffect::Unsafe) {
            Some(ran) => state.reports.send(grant, ran, Err(Failure::new(ErrorClass::Lost, why)), None),
            None => grants.push(grant),
        }
    }
    // A released call may start elsewhere at once, so the processes of its tool must have ended by then.
    if tokio::time::timeout(STOP, redial_tools::wait_for_kills()).await.is_err() {
        tracing::error!(
            timeout_ms = STOP.as_millis(),
            "Timed out while waiting for the processes of a stopped tool to end"
        );
    }
    // Before the release, because the dispatcher may grant the same attempt to this worker again.
    state.forget(&grants);
    release(state, grants).await;
}

/// Releases attempts; repeats the request until a dispatcher replies. What was not granted stays as it is.
pub(crate) async fn release(state: &WorkerState, grants: Vec<GrantRef>) {
    for batch in grants.chunks(MAX_CLAIM) {
        let request = ReleaseRequest { worker: state.id.clone(), jobs: batch.to_vec() };
        let (started, mut failures) = (Instant::now(), 0);
        loop {
            match state.request::<_, ReleaseReply>(ControlVerb::Release, &request, failures).await {
                Ok(reply) => {
                    if reply.released > 0 {
                        tracing::info!(requested = batch.len(), released = reply.released, "Released attempts");
                    }
                    break;
                }
                Err(error) => {
                    failures += 1;
                    tracing::warn!(jobs = batch.len(), failures, %error, "Failed to release attempts");
                    if is_permanent(&error) {
                        return;
                    }
                }
            }
            let limit = if state.draining.is_cancelled() { GIVE_UP_DRAINING } else { GIVE_UP };
            if started.elapsed() >= limit {
                return;
            }
            tokio::time::sleep(state.pause(failures)).await;
        }
    }
}
