//! Pull: takes as many jobs from a pool as it has free slots.

use std::{sync::Arc, time::Duration};

use redial_proto::{Job, JobRef, limits::MAX_CLAIM};
use redial_queue::Delivery;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    claim, pause,
    shared::{Pool, Shared},
};

/// How long one pull waits before it looks at the free slots again. Jobs that are there come at once.
const WAIT: Duration = Duration::from_secs(5);
const PAUSE_CAP: Duration = Duration::from_secs(1);
/// So often a job for a tool that this worker does not have is handed on at once: NATS gives it to the worker that has
/// waited longest, which may well have the tool. After that it comes again after a growing pause.
const HAND_ON: u64 = 4;
const HAND_BACK_CAP: Duration = Duration::from_secs(5);

/// A job with the slot that it will run in.
pub(crate) struct Pulled {
    pub(crate) job: Job,
    pub(crate) delivery: Delivery,
    pub(crate) slot: OwnedSemaphorePermit,
}

impl Pulled {
    pub(crate) fn job_ref(&self) -> JobRef {
        JobRef { call: self.job.call, attempt: self.job.attempt }
    }
}

/// Pulls and has claimed what it pulled, until the worker drains.
pub(crate) async fn pull(shared: Arc<Shared>, pool: Pool) {
    let mut failures = 0;
    while let Some(jobs) = shared.draining.run_until_cancelled(next(&shared, &pool, &mut failures)).await {
        for batch in claim::batches(jobs) {
            shared.claims.spawn(claim::claim(Arc::clone(&shared), batch));
        }
    }
    for late in shared.queue.end_pull(&pool.name).await {
        late.nak(Duration::ZERO).await;
    }
    tracing::debug!(pool = %pool.name, "no more jobs are taken");
}

/// The next jobs. Can be dropped while it waits: nothing is in its hands then.
async fn next(shared: &Shared, pool: &Pool, failures: &mut u32) -> Vec<Pulled> {
    shared.reports.room().await;
    // Only this loop takes slots, so what is free now stays free until the jobs are here.
    drop(pool.slots.acquire().await);
    let free = pool.slots.available_permits().min(MAX_CLAIM);
    match shared.queue.pull_jobs(&pool.name, free, WAIT).await {
        Ok(deliveries) => {
            *failures = 0;
            let mut jobs = Vec::with_capacity(deliveries.len());
            for delivery in deliveries {
                jobs.extend(take(shared, pool, delivery).await);
            }
            jobs
        }
        Err(error) => {
            *failures += 1;
            let wait = pause::after(*failures, PAUSE_CAP);
            tracing::warn!(pool = %pool.name, wait_ms = wait.as_millis(), "cannot pull jobs: {error}");
            tokio::time::sleep(wait).await;
            Vec::new()
        }
    }
}

/// Reads a job and gives it a slot; answers it at once if it cannot be run here.
async fn take(shared: &Shared, pool: &Pool, delivery: Delivery) -> Option<Pulled> {
    let job: Job = match serde_json::from_slice(&delivery.payload) {
        Ok(job) => job,
        Err(error) => {
            tracing::error!(subject = delivery.subject(), "a job that is none was thrown away: {error}");
            delivery.term().await;
            return None;
        }
    };
    if !shared.tools.contains_key(&job.tool) {
        tracing::debug!(call = %job.call, tool = job.tool, "a job for another worker of this pool was handed back");
        delivery.nak(hand_back_pause(delivery.delivered)).await;
        return None;
    }
    let Ok(slot) = Arc::clone(&pool.slots).try_acquire_owned() else {
        tracing::error!(pool = %pool.name, "more jobs than free slots: handed back");
        delivery.nak(Duration::ZERO).await;
        return None;
    };
    Some(Pulled { job, delivery, slot })
}

fn hand_back_pause(delivered: u64) -> Duration {
    match u32::try_from(delivered.saturating_sub(HAND_ON)).unwrap_or(u32::MAX) {
        failures @ 1.. => pause::after(failures, HAND_BACK_CAP),
        0 => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_for_another_worker_goes_on_at_once_and_then_waits() {
        for delivered in 1..=HAND_ON {
            assert_eq!(hand_back_pause(delivered), Duration::ZERO);
        }
        assert!(hand_back_pause(HAND_ON + 1) >= Duration::from_millis(50));
        assert!(hand_back_pause(1000) <= HAND_BACK_CAP.mul_f64(1.5));
    }
}
