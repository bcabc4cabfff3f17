//! Taking messages from streams: jobs for workers, reports and submissions for dispatchers.

use std::time::Duration;

use redial_proto::subjects::{DISPATCHERS, INTAKE_STREAM, JOBS_STREAM, RESULTS_STREAM, check_consumer_name};

use crate::{
    Delivery, Queue, QueueError,
    connect::RECONNECT,
    pull::{Puller, Source},
};

impl Queue {
    /// Takes the jobs of a consumer, for one loop of a worker.
    pub fn jobs(&self, consumer: &str) -> Result<Jobs, QueueError> {
        check_consumer_name(consumer).map_err(QueueError::Name)?;
        let source = Source { stream: JOBS_STREAM, consumer: consumer.to_owned() };
        Ok(Jobs { puller: Puller::new(self.clone(), source) })
    }

    /// Takes reports of workers, shared by all dispatchers.
    pub fn results(&self) -> Deliveries {
        self.deliveries(RESULTS_STREAM)
    }

    /// Takes submissions without a waiting client, shared by all dispatchers.
    pub fn intake(&self) -> Deliveries {
        self.deliveries(INTAKE_STREAM)
    }

    fn deliveries(&self, stream: &'static str) -> Deliveries {
        let source = Source { stream, consumer: DISPATCHERS.to_owned() };
        Deliveries { puller: Puller::new(self.clone(), source), failures: 0 }
    }
}

/// Jobs of one consumer. One pull request stays open between calls of [`Jobs::pull`], so a job that arrives late is
/// returned by the next call.
pub struct Jobs {
    puller: Puller,
}

impl Jobs {
    /// Takes up to `max` jobs: waits up to `wait` for the first, then returns what has arrived. A caller must not ask
    /// for less than the last time, minus what it was given: the open request may still bring that many. `Missing` if
    /// the consumer does not exist, after about 3 s. Can be cancelled without loss.
    pub async fn pull(&mut self, max: usize, wait: Duration) -> Result<Vec<Delivery>, QueueError> {
        self.puller.next(max, wait).await
    }

    /// Takes what the open request of the last pull still brings; never returns if there is none. Can be cancelled
    /// without loss.
    pub async fn late(&mut self) -> Vec<Delivery> {
        self.puller.late().await
    }

    /// Waits until the server sends no more jobs on the open request (at most about 5 s), and returns those that still
    /// arrived.
    pub async fn end(mut self) -> Vec<Delivery> {
        self.puller.end().await
    }
}

/// Messages of a stream for dispatchers, without an end.
pub struct Deliveries {
    puller: Puller,
    failures: u32,
}

impl Deliveries {
    /// Takes up to `max` messages; waits for the first. Survives reconnects and a wiped store: it logs, waits and tries
    /// again. Can be cancelled without loss.
    pub async fn next(&mut self, max: usize) -> Vec<Delivery> {
        loop {
            match self.puller.next(max, Duration::from_hours(1)).await {
                Ok(deliveries) if deliveries.is_empty() => {}
                Ok(deliveries) => {
                    self.failures = 0;
                    return deliveries;
                }
                Err(error) => self.pause(&error).await,
            }
        }
    }

    /// Stops (which takes 2 to 5 s), and hands back what arrived and was not processed: other dispatchers get it at
    /// once.
    pub async fn end(mut self) {
        for late in self.puller.end().await {
            late.nak(Duration::ZERO).await;
        }
    }

    async fn pause(&mut self, error: &QueueError) {
        self.failures = self.failures.saturating_add(1);
        let wait = RECONNECT.after(self.failures);
        tracing::warn!(wait_ms = wait.as_millis(), %error, "Failed to take messages from NATS");
        tokio::time::sleep(wait).await;
    }
}
