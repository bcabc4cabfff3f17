//! Drain: shuts the worker down without losing results or using up attempts.

use std::{sync::Arc, time::Duration};

use redial_loops::Loops;
use redial_proto::{Heartbeat, HeartbeatReply, subjects::ControlVerb};
use tokio_util::sync::CancellationToken;

use crate::{release::release_stopped, state::WorkerState};

/// How long the last reports may take to be on record.
const FLUSH: Duration = Duration::from_secs(10);
/// How long a dispatcher may take to answer the last heartbeat.
const GOODBYE: Duration = Duration::from_secs(1);
/// How long a stopped tool may take to end.
const STOP: Duration = Duration::from_secs(2);

/// Takes no more jobs, lets running ones finish within the grace period, releases the rest, and waits for the reports.
/// `pulls` tracks the pull loops of all pools; `kill` ends the grace period early.
pub(crate) async fn drain(state: &Arc<WorkerState>, pulls: &Loops, grace: Duration, kill: &CancellationToken) {
    tracing::info!(grace_ms = grace.as_millis(), "Started draining");
    state.draining.cancel();
    state.heartbeat_now.notify_one();
    let finished = async {
        pulls.close();
        pulls.wait().await;
        state.control_tasks.close();
        state.control_tasks.wait().await;
        state.attempts.idle().await;
    };
    let in_time = tokio::time::timeout(grace, kill.run_until_cancelled(finished)).await;
    if !matches!(in_time, Ok(Some(()))) {
        stop_running(state).await;
    }
    state.control_tasks.close();
    let flushed = async { tokio::join!(state.control_tasks.wait(), state.reports.wait_until_recorded()) };
    if tokio::time::timeout(FLUSH, flushed).await.is_err() {
        let reports = state.reports.pending();
        tracing::error!(
            reports,
            "Stopped before all reports were on record; the dispatchers will treat their attempts as lost"
        );
    }
    state.queue.flush().await;
    say_goodbye(state).await;
    tracing::info!("Drained");
}

/// Tells the dispatchers that this worker has ended, with a heartbeat without slots. If that fails, they notice it when its
/// heartbeats stay away.
async fn say_goodbye(state: &WorkerState) {
    let last = Heartbeat { worker: state.id.clone(), running: Vec::new(), slots: 0, draining: true, held_at: None };
    let sent = state.request::<_, HeartbeatReply>(ControlVerb::Heartbeat, &last, 0);
    if !matches!(tokio::time::timeout(GOODBYE, sent).await, Ok(Ok(_))) {
        tracing::debug!("No dispatcher answered the last heartbeat");
    }
}

/// Stops the tools that still run after the grace period, and releases their attempts.
async fn stop_running(state: &WorkerState) {
    let stopped = state.attempts.stop_all();
    tracing::warn!(attempts = stopped.len(), "Stopped the tools that still ran after the grace period");
    // A released call may start elsewhere at once, so its tool must have ended by then.
    state.tool_tasks.close();
    if tokio::time::timeout(STOP, state.tool_tasks.wait()).await.is_err() {
        tracing::error!(timeout_ms = STOP.as_millis(), "Timed out while waiting for stopped tools to end");
    }
    release_stopped(state, stopped, "the worker was shut down while the tool ran").await;
}
