//! Publishes jobs: pipelined, in batches, after the commit that made them due.

use std::{collections::BTreeMap, sync::Arc};

use redial_loops::Loops;
use redial_queue::Queue;
use redial_records::OutgoingJob;
use redial_store::Store;
use redial_telemetry::metrics;
use tokio::sync::mpsc;

use crate::{
    batcher::{self, BatchWork, Batching},
    feeder::Feeder,
};

/// Starts the publisher.
pub(crate) fn start(queue: &Queue, store: &Store, feeder: &Arc<Feeder>, loops: &Loops) -> mpsc::Sender<OutgoingJob> {
    let publisher = Publisher { queue: queue.clone(), store: store.clone(), feeder: feeder.clone() };
    batcher::start(Batching { name: "publish jobs", workers: 4, batch: 512 }, loops, &publisher)
}

#[derive(Clone)]
struct Publisher {
    queue: Queue,
    store: Store,
    feeder: Arc<Feeder>,
}

impl BatchWork<OutgoingJob> for Publisher {
    /// The call of a job that could not be published goes back to the backlog. If that fails, too, the sweeper finds it.
    async fn work(&self, batch: Vec<OutgoingJob>) {
        metrics().batch_size("publish", batch.len());
        let mut batch = batch;
        // Stable: the jobs of a tool stay in their order.
        batch.sort_by(|one, other| (&one.consumer, &one.job.tool).cmp(&(&other.consumer, &other.job.tool)));
        let packs = self.packs(&batch);
        let results = self.queue.publish_packs(&packs).await;
        self.feeder.arrived(batch.iter().map(|job| (job.consumer.as_str(), job.job.tool.as_str())));
        let mut consumers = BTreeMap::<&str, u64>::new();
        let (mut failed, mut first_error) = (Vec::new(), None);
        for (pack, result) in packs.iter().zip(results) {
            match result {
                Ok(()) => {
                    let consumer = pack.first().map_or("", |job| job.consumer.as_str());
                    *consumers.entry(consumer).or_default() += pack.len() as u64;
                }
                Err(error) => {
                    failed.extend_from_slice(pack);
                    first_error.get_or_insert(error);
                }
            }
        }
        for (consumer, count) in consumers {
            metrics().jobs_published(consumer, count);
        }
        if first_error.is_none() {
            self.feeder.resume();
        }
        if let Some(error) = first_error {
            // Or they would be taken from the backlog and put back again and again.
            self.feeder.pause();
            tracing::warn!(%error, failed = failed.len(), "Failed to publish jobs; their calls wait in the backlog");
            self.requeue(&failed).await;
        }
    }
}

impl Publisher {
    /// Puts jobs of a tool for a consumer together. `batch` is sorted by both.
    fn packs<'a>(&self, batch: &'a [OutgoingJob]) -> Vec<&'a [OutgoingJob]> {
        let of_tools = batch.chunk_by(|one, other| one.consumer == other.consumer && one.job.tool == other.job.tool);
        let mut packs = Vec::new();
        for jobs in of_tools {
            let most = jobs.first().map_or(1, |job| self.feeder.pack_size(&job.consumer, jobs.len()));
            packs.extend(jobs.chunks(most));
        }
        packs
    }

    async fn requeue(&self, failed: &[OutgoingJob]) {
        match self.store.requeue(failed).await {
            Ok(requeued) => {
                metrics().jobs_requeued(requeued);
                self.feeder.recheck();
            }
            Err(error) => tracing::warn!(%error, "Failed to put calls back into the backlog; the sweeper finds them"),
        }
    }
}
