//! Pull: takes as many jobs from a pool as it has free permits.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use redial_proto::{Job, limits::MAX_CLAIM};
use redial_queue::{Delivery, Jobs};
use tokio::sync::watch;

use crate::{
    claim, pause,
    pool::{LimitReached, Pool, PulledJob},
    state::WorkerState,
};

/// How long one pull stays open; the next one asks for as many jobs as there are free permits then. Available jobs
/// arrive at once.
const WAIT: Duration = Duration::from_secs(5);
const PAUSE_CAP: Duration = Duration::from_secs(1);
/// A job whose tool has reached its limit goes back to the stream for a time that doubles up to this. It is not
/// claimed, so it uses up no attempt, no time of its lease, and no permit that another job could use.
const LIMITED_CAP: Duration = Duration::from_secs(4);

/// Pulls jobs and spawns a claim for each batch, until the worker drains.
pub(crate) async fn pull(state: Arc<WorkerState>, pool: Pool) {
    let mut consumers = state.consumers.subscribe();
    while !state.draining.is_cancelled() {
        // The jobs of a consumer that was not named are for others.
        let Some(consumer) = consumers.borrow_and_update().get(&pool.name).cloned() else {
            state.draining.run_until_cancelled(consumers.changed()).await;
            continue;
        };
        match state.queue.jobs(&consumer) {
            Ok(stream) => pull_from(&state, &pool, stream, &mut consumers).await,
            Err(error) => {
                tracing::error!(pool = %pool.name, consumer, %error, "Cannot pull jobs; waiting for another registration");
                state.draining.run_until_cancelled(consumers.changed()).await;
            }
        }
    }
    tracing::debug!(pool = %pool.name, "Stopped pulling jobs");
}

/// Pulls from one consumer, until a registration names another one.
async fn pull_from(
    state: &Arc<WorkerState>,
    pool: &Pool,
    mut stream: Jobs,
    consumers: &mut watch::Receiver<BTreeMap<String, String>>,
) {
    let mut history = PullHistory::default();
    loop {
        let jobs = tokio::select! {
            biased;
            () = state.draining.cancelled() => break,
            _ = consumers.changed() => break,
            jobs = next(state, pool, &mut stream, &mut history) => jobs,
        };
        for batch in claim::batches(jobs) {
            state.control_tasks.spawn("claim jobs", claim::claim(Arc::clone(state), batch));
        }
    }
    for delivery in stream.end().await {
        delivery.nak(Duration::ZERO).await;
    }
}

/// What happened in the last pulls.
#[derive(Default)]
struct PullHistory {
    /// Consecutive pulls that failed.
    failures: u32,
    /// Tools of discarded jobs that this worker does not have.
    missing_tools: HashSet<String>,
}

/// The next jobs. Cancel-safe: the future owns no delivery while it waits.
async fn next(state: &WorkerState, pool: &Pool, stream: &mut Jobs, history: &mut PullHistory) -> Vec<PulledJob> {
    state.reports.wait_for_capacity().await;
    // Only this loop acquires permits of the pool, so the free ones are still free when the jobs arrive. A permit that
    // command tools of several pools share may be gone by then; such a job goes back to the stream.
    pool.wait_for_permit().await;
    let free = pool.permits.available_permits().min(MAX_CLAIM);
    match stream.pull(free, WAIT).await {
        Ok(deliveries) => {
            history.failures = 0;
            let mut jobs = Vec::with_capacity(deliveries.len());
            for delivery in deliveries {
                jobs.extend(take(state, pool, history, delivery).await);
            }
            jobs
        }
        Err(error) => {
            history.failures += 1;
            let wait = pause::after(history.failures, PAUSE_CAP);
            tracing::warn!(pool = %pool.name, wait_ms = wait.as_millis(), %error, "Failed to pull jobs");
            tokio::time::sleep(wait).await;
            Vec::new()
        }
    }
}

/// Parses a job and acquires a permit for it. A job that cannot run here goes back to the stream or is discarded.
async fn take(state: &WorkerState, pool: &Pool, history: &mut PullHistory, delivery: Delivery) -> Option<PulledJob> {
    let job: Job = match serde_json::from_slice(&delivery.payload) {
        Ok(job) => job,
        Err(error) => {
            tracing::error!(subject = delivery.subject(), %error, "Discarded a job that could not be parsed");
            delivery.term().await;
            return None;
        }
    };
    if !state.tools.contains_key(&job.tool) {
        // Left over from workers with other tools that had this consumer before. It is only a hint, and in nobody's way
        // once it is gone: the dispatchers publish it again where the tool is.
        delivery.ack().await;
        if history.missing_tools.insert(job.tool.clone()) {
            tracing::warn!(tool = job.tool, pool = %pool.name, "Discarded a job whose tool this worker does not have");
        }
        return None;
    }
    match pool.try_acquire(&job.tool) {
        Ok(permit) => return Some(PulledJob { job, delivery, permit }),
        Err(LimitReached::Tool) => {
            let times = u32::try_from(delivery.delivered).unwrap_or(u32::MAX);
            delivery.nak(pause::after(times, LIMITED_CAP)).await;
        }
        Err(LimitReached::Pool) => {
            tracing::error!(pool = %pool.name, "Returned a job because more jobs arrived than permits were free");
            delivery.nak(Duration::ZERO).await;
        }
    }
    None
}
