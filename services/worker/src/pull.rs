//! Pull: takes as many jobs from a pool as it has free slots.

use std::{collections::HashSet, sync::Arc, time::Duration};

use redial_proto::{Job, JobRef, limits::MAX_CLAIM};
use redial_queue::Delivery;

use crate::{
    claim, pause,
    shared::{Busy, Pool, Shared, Slot},
};

/// How long one pull waits before it looks at the free slots again. Jobs that are there come at once.
const WAIT: Duration = Duration::from_secs(5);
const PAUSE_CAP: Duration = Duration::from_secs(1);
/// A worker that pulled nothing but jobs for tools that it does not have waits before it pulls again, so that the workers
/// that have them come to their turn.
const STEP_BACK_CAP: Duration = Duration::from_secs(1);
/// A job whose tool runs as much as it may goes back for a while that doubles up to this. It is not claimed, so that
/// waiting costs it no attempt and no part of its time, and it holds no slot that others could use.
const BUSY_CAP: Duration = Duration::from_secs(4);

/// A job with the slot that it will run in.
pub(crate) struct Pulled {
    pub(crate) job: Job,
    pub(crate) delivery: Delivery,
    pub(crate) slot: Slot,
}

impl Pulled {
    pub(crate) fn job_ref(&self) -> JobRef {
        JobRef { call: self.job.call, attempt: self.job.attempt }
    }
}

/// Pulls and has claimed what it pulled, until the worker drains.
pub(crate) async fn pull(shared: Arc<Shared>, pool: Pool) {
    let mut mood = Mood::default();
    while let Some(jobs) = shared.draining.run_until_cancelled(next(&shared, &pool, &mut mood)).await {
        for batch in claim::batches(jobs) {
            shared.claims.spawn(claim::claim(Arc::clone(&shared), batch));
        }
    }
    for late in shared.queue.end_pull(&pool.name).await {
        late.nak(Duration::ZERO).await;
    }
    tracing::debug!(pool = %pool.name, "no more jobs are taken");
}

/// What the last pulls were like.
#[derive(Default)]
struct Mood {
    /// Pulls that failed, one after another.
    failures: u32,
    /// Pulls that brought nothing but jobs for other workers, one after another.
    fruitless: u32,
    /// The last pull brought a job whose tool runs as much as it may.
    busy: bool,
    /// Tools of other workers that were met in this pool.
    foreign: HashSet<String>,
}

/// The next jobs. Can be dropped while it waits: nothing is in its hands then.
async fn next(shared: &Shared, pool: &Pool, mood: &mut Mood) -> Vec<Pulled> {
    shared.reports.room().await;
    // Only this loop takes slots, so what is free now stays free until the jobs are here.
    drop(pool.slots.acquire().await);
    // After a fruitless pull one at a time, so that no request stays open while this loop waits.
    let most = if mood.fruitless == 0 { MAX_CLAIM } else { 1 };
    let free = pool.slots.available_permits().min(most);
    match shared.queue.pull_jobs(&pool.name, free, WAIT).await {
        Ok(deliveries) => {
            (mood.failures, mood.busy) = (0, false);
            let came = !deliveries.is_empty();
            let mut jobs = Vec::with_capacity(deliveries.len());
            for delivery in deliveries {
                jobs.extend(take(shared, pool, mood, delivery).await);
            }
            step_back(mood, came && jobs.is_empty() && !mood.busy).await;
            jobs
        }
        Err(error) => {
            mood.failures += 1;
            let wait = pause::after(mood.failures, PAUSE_CAP);
            tracing::warn!(pool = %pool.name, wait_ms = wait.as_millis(), "cannot pull jobs: {error}");
            tokio::time::sleep(wait).await;
            Vec::new()
        }
    }
}

async fn step_back(mood: &mut Mood, fruitless: bool) {
    mood.fruitless = if fruitless { mood.fruitless + 1 } else { 0 };
    if fruitless {
        tokio::time::sleep(pause::after(mood.fruitless, STEP_BACK_CAP)).await;
    }
}

/// Reads a job and gives it a slot; answers it at once if it cannot be run here.
async fn take(shared: &Shared, pool: &Pool, mood: &mut Mood, delivery: Delivery) -> Option<Pulled> {
    let job: Job = match serde_json::from_slice(&delivery.payload) {
        Ok(job) => job,
        Err(error) => {
            tracing::error!(subject = delivery.subject(), "a job that is none was thrown away: {error}");
            delivery.term().await;
            return None;
        }
    };
    if !shared.tools.contains_key(&job.tool) {
        delivery.nak(Duration::ZERO).await;
        if mood.foreign.insert(job.tool.clone()) {
            tracing::warn!(
                tool = job.tool,
                pool = %pool.name,
                "this worker does not have a tool of its pool; workers of one pool should have the same tools"
            );
        }
        return None;
    }
    match pool.slot(&job.tool) {
        Ok(slot) => return Some(Pulled { job, delivery, slot }),
        Err(Busy::Tool) => {
            mood.busy = true;
            let times = u32::try_from(delivery.delivered).unwrap_or(u32::MAX);
            delivery.nak(pause::after(times, BUSY_CAP)).await;
        }
        Err(Busy::Pool) => {
            tracing::error!(pool = %pool.name, "more jobs than free slots: handed back");
            delivery.nak(Duration::ZERO).await;
        }
    }
    None
}
