//! Drain: ends in order, so that nothing is lost and no attempt is burned.

use std::{sync::Arc, time::Duration};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{release::hand_back, shared::Shared};

/// How long reports may take to be on record at the end.
const FLUSH: Duration = Duration::from_secs(10);
/// How long a stopped tool may take to be gone.
const STOP: Duration = Duration::from_secs(2);

/// Takes no more jobs, lets the running ones finish within the grace, gives the rest back, waits for the reports.
/// `pulls` are the pools' loops.
pub(crate) async fn drain(shared: &Arc<Shared>, pulls: &TaskTracker, grace: Duration, kill: &CancellationToken) {
    tracing::info!(grace_ms = grace.as_millis(), "draining: no more jobs are taken");
    shared.draining.cancel();
    shared.renew_now.notify_one();
    let finished = async {
        pulls.close();
        pulls.wait().await;
        shared.claims.close();
        shared.claims.wait().await;
        shared.held.idle().await;
    };
    let in_time = tokio::time::timeout(grace, kill.run_until_cancelled(finished)).await;
    if !matches!(in_time, Ok(Some(()))) {
        cut_off(shared).await;
    }
    shared.claims.close();
    let flushed = async { tokio::join!(shared.claims.wait(), shared.reports.flushed()) };
    if tokio::time::timeout(FLUSH, flushed).await.is_err() {
        let waiting = shared.reports.waiting();
        tracing::error!(waiting, "not everything is on record; what is missing will be taken for lost");
    }
    shared.queue.flush().await;
    tracing::info!("drained");
}

/// The grace is over. Tools that still run are stopped, and their calls handed back.
async fn cut_off(shared: &Shared) {
    let stopped = shared.held.stop_all();
    tracing::warn!(stopped = stopped.len(), "the grace is over: running tools were stopped");
    // A call that is given back may start elsewhere at once: its tool must be gone by then.
    shared.attempts.close();
    if tokio::time::timeout(STOP, shared.attempts.wait()).await.is_err() {
        tracing::error!("a tool does not stop");
    }
    hand_back(shared, stopped, "the worker was shut down while the tool ran").await;
}
