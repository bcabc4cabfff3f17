//! Publishes jobs: pipelined, in batches, after the commit that wants them.

use std::collections::BTreeMap;

use redial_queue::{OutgoingJob, Queue};
use redial_telemetry::metrics;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::lanes::{self, AsyncWork, Lanes};

/// Starts the publisher.
pub(crate) fn start(queue: &Queue, tasks: &TaskTracker) -> mpsc::Sender<OutgoingJob> {
    lanes::start(Lanes { count: 4, batch: 512 }, tasks, &Publisher(queue.clone()))
}

#[derive(Clone)]
struct Publisher(Queue);

impl AsyncWork<OutgoingJob> for Publisher {
    /// A job that could not be published is not lost: its call is `ready` in Postgres, and the sweeper publishes it
    /// again with a new message id.
    async fn work(&self, batch: Vec<OutgoingJob>) {
        metrics().batch_size("publish", batch.len());
        let mut pools = BTreeMap::<String, u64>::new();
        for job in &batch {
            match pools.get_mut(&job.pool) {
                Some(count) => *count += 1,
                None => drop(pools.insert(job.pool.clone(), 1)),
            }
        }
        let results = self.0.publish_jobs(batch).await;
        let failures: Vec<_> = results.into_iter().filter_map(Result::err).collect();
        if let Some(error) = failures.first() {
            tracing::warn!(%error, failed = failures.len(), "jobs were not published; the sweeper will see to them");
        }
        for (pool, count) in pools {
            metrics().jobs_published(&pool, count);
        }
    }
}
