//! Publishes jobs: pipelined, in batches, after the commit that made them due.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use redial_loops::Loops;
use redial_queue::Queue;
use redial_records::OutgoingJob;
use redial_store::Store;
use redial_telemetry::metrics;
use tokio::{sync::mpsc, time::Instant};

use crate::{
    batcher::{self, BatchWork, Batching},
    feeder::Feeder,
};

/// Jobs that fail for less than this are no trouble: a NATS server is restarted, or a stream gets a new leader.
const SUSTAINED: Duration = Duration::from_secs(5);
/// While calls wait, their jobs are tried again after the feeder's longest pause, a second, and the longest wait for the server,
/// two. If none was tried for this long, none is there, and the last failure says nothing about now.
const FORGOTTEN: Duration = Duration::from_mins(1);

/// Starts the publisher; returns what takes jobs, and whether NATS takes them.
pub(crate) fn start(
    queue: &Queue,
    store: &Store,
    feeder: &Arc<Feeder>,
    loops: &Loops,
) -> (mpsc::Sender<OutgoingJob>, Arc<Publishing>) {
    let publishing = Arc::<Publishing>::default();
    let (feeder, shared) = (feeder.clone(), publishing.clone());
    let publisher = Publisher { queue: queue.clone(), store: store.clone(), feeder, publishing: shared };
    (batcher::start(Batching { name: "publish jobs", workers: 4, batch: 512 }, loops, &publisher), publishing)
}

#[derive(Clone)]
struct Publisher {
    queue: Queue,
    store: Store,
    feeder: Arc<Feeder>,
    publishing: Arc<Publishing>,
}

impl BatchWork<OutgoingJob> for Publisher {
    /// Publishes jobs; the call of one that cannot be goes back to the backlog. If that fails, the sweeper finds it.
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
        self.publishing.ended(consumers.is_empty(), Instant::now());
        for (consumer, count) in consumers {
            metrics().jobs_published(consumer, count);
        }
        if first_error.is_none() {
            self.feeder.resume();
        }
        if let Some(error) = first_error {
            // Or they would be taken from the backlog and put back again and again.
            self.feeder.pause();
            match self.publishing.fail_since(Instant::now()) {
                Some(since) => tracing::warn!(%since, %error, "Jobs cannot be published; accepted calls wait"),
                None => {
                    tracing::warn!(%error, failed = failed.len(), "Failed to publish jobs; their calls wait in the backlog");
                }
            }
            self.requeue(&failed).await;
        }
    }
}

/// Whether NATS takes jobs.
#[derive(Default)]
pub(crate) struct Publishing(Mutex<Option<Failing>>);

/// Batches of which nothing was taken, one after the other.
struct Failing {
    since: DateTime<Utc>,
    first: Instant,
    last: Instant,
}

impl Publishing {
    fn ended(&self, nothing_taken: bool, now: Instant) {
        let mut failing = self.0.lock();
        if nothing_taken {
            let failing = failing.get_or_insert_with(|| Failing { since: Utc::now(), first: now, last: now });
            failing.last = now;
        } else if let Some(ended) = failing.take().filter(Failing::is_sustained) {
            tracing::warn!(since = %ended.since, "Published jobs again");
        }
    }

    /// Returns since when no job is taken, if that lasts.
    pub(crate) fn fail_since(&self, now: Instant) -> Option<DateTime<Utc>> {
        let mut failing = self.0.lock();
        failing.take_if(|failing| now.duration_since(failing.last) > FORGOTTEN);
        failing.as_ref().filter(|failing| failing.is_sustained()).map(|failing| failing.since)
    }
}

impl Failing {
    fn is_sustained(&self) -> bool {
        self.last.duration_since(self.first) >= SUSTAINED
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_keep_failing_are_trouble_until_one_is_taken_or_none_is_there() {
        let (publishing, start) = (Publishing::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let is_trouble = |seconds| publishing.fail_since(at(seconds)).is_some();
        publishing.ended(false, at(0));
        publishing.ended(true, at(1));
        assert!(!is_trouble(2), "a moment is none");
        publishing.ended(true, at(6));
        assert!(is_trouble(6) && is_trouble(60));
        publishing.ended(false, at(61));
        assert!(!is_trouble(61));
        for second in 62..70 {
            publishing.ended(true, at(second));
        }
        assert!(is_trouble(70) && !is_trouble(140), "nothing was tried for a minute");
        publishing.ended(true, at(141));
        assert!(!is_trouble(141), "it began again");
    }
}
