//! Pull: takes as many jobs from a pool as it has free permits.

use std::{collections::HashSet, sync::Arc, time::Duration};

use redial_proto::{Job, limits::MAX_CLAIM};
use redial_queue::{Delivery, Jobs};

use crate::{
    claim, pause,
    pool::{LimitReached, Pool, PulledJob},
    state::WorkerState,
};

/// How long one pull stays open; the next one asks for as many jobs as there are free permits then. Available jobs
/// arrive at once.
const WAIT: Duration = Duration::from_secs(5);
const PAUSE_CAP: Duration = Duration::from_secs(1);
/// After pulling only jobs for tools that it does not have, a worker waits before it pulls again, so that the workers
/// that have these tools get the jobs.
const BACK_OFF_CAP: Duration = Duration::from_secs(1);
/// A job whose tool has reached its limit goes back to the stream for a time that doubles up to this. It is not
/// claimed, so it uses up no attempt, no time of its lease, and no permit that another job could use.
const LIMITED_CAP: Duration = Duration::from_secs(4);

/// Pulls jobs and spawns a claim for each batch, until the worker drains.
pub(crate) async fn pull(state: Arc<WorkerState>, pool: Pool, mut stream: Jobs) {
    let mut history = PullHistory::default();
    while let Some(jobs) = state.draining.run_until_cancelled(next(&state, &pool, &mut stream, &mut history)).await {
        for batch in claim::batches(jobs) {
            state.control_tasks.spawn(claim::claim(Arc::clone(&state), batch));
        }
    }
    for delivery in stream.end().await {
        delivery.nak(Duration::ZERO).await;
    }
    tracing::debug!(pool = %pool.name, "Stopped pulling jobs");
}

/// What happened in the last pulls.
#[derive(Default)]
struct PullHistory {
    /// Consecutive pulls that failed.
    failures: u32,
    /// Consecutive pulls that returned only jobs for other workers.
    fruitless: u32,
    /// The last pull returned a job whose tool has reached its limit.
    limited: bool,
    /// Tools that this worker does not have, but other workers of the pool.
    missing_tools: HashSet<String>,
}

/// The next jobs. Cancel-safe: the future owns no delivery while it waits.
async fn next(state: &WorkerState, pool: &Pool, stream: &mut Jobs, history: &mut PullHistory) -> Vec<PulledJob> {
    state.reports.wait_for_capacity().await;
    // Only this loop acquires permits of the pool, so the free ones are still free when the jobs arrive.
    drop(pool.permits.acquire().await);
    // After a fruitless pull only one job, so that no request stays open while this loop backs off.
    let most = if history.fruitless == 0 { MAX_CLAIM } else { 1 };
    let free = pool.permits.available_permits().min(most);
    match stream.pull(free, WAIT).await {
        Ok(deliveries) => {
            (history.failures, history.limited) = (0, false);
            let received = !deliveries.is_empty();
            let mut jobs = Vec::with_capacity(deliveries.len());
            for delivery in deliveries {
                jobs.extend(take(state, pool, history, delivery).await);
            }
            back_off(history, received && jobs.is_empty() && !history.limited).await;
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

async fn back_off(history: &mut PullHistory, fruitless: bool) {
    history.fruitless = if fruitless { history.fruitless + 1 } else { 0 };
    if fruitless {
        tokio::time::sleep(pause::after(history.fruitless, BACK_OFF_CAP)).await;
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
        delivery.nak(Duration::ZERO).await;
        if history.missing_tools.insert(job.tool.clone()) {
            tracing::warn!(
                tool = job.tool,
                pool = %pool.name,
                "Returned a job whose tool this worker does not have; workers of one pool should have the same tools"
            );
        }
        return None;
    }
    match pool.try_acquire(&job.tool) {
        Ok(permit) => return Some(PulledJob { job, delivery, permit }),
        Err(LimitReached::Tool) => {
            history.limited = true;
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
