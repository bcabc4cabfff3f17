//! Publishes jobs: pipelined, in batches, after the commit that made them due.

use std::collections::BTreeMap;

use redial_queue::Queue;
use redial_records::OutgoingJob;
use redial_telemetry::metrics;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::batcher::{self, BatchWork, Batching};

/// Starts the publisher.
pub(crate) fn start(queue: &Queue, tasks: &TaskTracker) -> mpsc::Sender<OutgoingJob> {
    batcher::start(Batching { workers: 4, batch: 512 }, tasks, &Publisher(queue.clone()))
}

#[derive(Clone)]
struct Publisher(Queue);

impl BatchWork<OutgoingJob> for Publisher {
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
            tracing::warn!(%error, failed = failures.len(), "Failed to publish jobs; the sweeper publishes them again");
        }
        for (pool, count) in pools {
            metrics().jobs_published(&pool, count);
        }
    }
}
