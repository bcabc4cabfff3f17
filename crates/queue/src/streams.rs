//! Streams and consumers: created if missing, then read back and compared, because an older server silently ignores
//! settings that it does not know. Only settings known to nats-server 2.9 are used.
//!
//! What an operator may tune (limits, ack wait, and replicas unless they are a setting of Redial) is set at creation and left
//! alone afterwards; only settings that correctness depends on are compared.

mod replicas;
mod settings;

use std::{collections::HashMap, sync::atomic::Ordering};

use chrono::{DateTime, Utc};
use redial_proto::subjects::{self, DISPATCHERS, INTAKE_STREAM, JOBS_STREAM, RESULTS_STREAM, check_consumer_name};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::settings::{ConsumerConfig, StreamConfig, compare_consumer, compare_stream};
use crate::{Queue, QueueError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    /// When the job stream was created. If this changes, the store was wiped: every job must be published again.
    pub jobs_created: DateTime<Utc>,
    /// Messages on the job stream, delivered or not.
    pub jobs: u64,
}

/// What is on the job stream of a tool for a consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unclaimed {
    /// Messages, each with one job or several.
    pub messages: u64,
    /// The jobs in them.
    pub jobs: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsumerDepth {
    /// Messages that were not delivered to a worker yet.
    pub pending: u64,
    /// Messages that were delivered to a worker and not answered.
    pub unacked: u64,
    /// Of those, messages that were delivered more than once: workers gave them back, to take them later.
    pub redelivered: u64,
    /// Pulls that wait for jobs. While there are some, pending jobs exist only in the count: after a crash nats-server may
    /// count jobs that it does not have (measured with 2.9.10).
    pub waiting_pulls: u64,
}

#[derive(Deserialize)]
struct StreamInfo {
    config: StreamConfig,
    created: DateTime<Utc>,
    state: StreamState,
}

#[derive(Deserialize)]
struct StreamState {
    messages: u64,
    last_seq: u64,
    /// By subject, if they were asked for.
    subjects: Option<HashMap<String, u64>>,
}

#[derive(Deserialize)]
struct ConsumerInfo {
    config: ConsumerConfig,
    delivered: Delivered,
    ack_floor: AckFloor,
    num_pending: u64,
    num_ack_pending: u64,
    #[serde(default)]
    num_redelivered: u64,
    #[serde(default)]
    num_waiting: u64,
}

#[derive(Deserialize)]
struct Delivered {
    /// Sequence number of the last message that was delivered.
    stream_seq: u64,
}

#[derive(Deserialize)]
struct AckFloor {
    /// All messages up to this sequence number were answered.
    stream_seq: u64,
}

/// How far a consumer is.
pub(crate) struct Progress {
    /// All messages up to this sequence number were answered.
    pub(crate) answered_to: u64,
    /// The last message that was delivered.
    pub(crate) delivered_to: u64,
    /// How many were delivered and not answered.
    pub(crate) unanswered: u64,
}

impl Queue {
    /// Creates the streams and the dispatchers' consumers if they are missing, and checks them. Idempotent and a few
    /// parallel round trips.
    pub async fn ensure_streams(&self) -> Result<Streams, QueueError> {
        let (jobs, shared) = tokio::join!(self.ensure_job_stream(), self.ensure_shared_streams());
        shared?;
        jobs
    }

    /// Creates the job stream if it is missing, and checks it: one round trip.
    pub async fn ensure_job_stream(&self) -> Result<Streams, QueueError> {
        let jobs = self.ensure_stream(JOBS_STREAM, "redial.jobs.>").await?;
        self.inner.last_job.store(jobs.state.last_seq, Ordering::Relaxed);
        Ok(Streams { jobs_created: jobs.created, jobs: jobs.state.messages })
    }

    /// Creates the streams of results and submissions with their consumers if they are missing, and checks them: also
    /// the second one if there is something wrong with the first.
    pub async fn ensure_shared_streams(&self) -> Result<(), QueueError> {
        let (results, intake) = tokio::join!(
            self.ensure_shared(RESULTS_STREAM, subjects::RESULTS),
            self.ensure_shared(INTAKE_STREAM, subjects::INTAKE),
        );
        results.and(intake)
    }

    /// Creates a consumer of jobs if it is missing, and checks it; returns how many jobs wait for its workers.
    pub async fn ensure_jobs(&self, consumer: &str) -> Result<ConsumerDepth, QueueError> {
        check_consumer_name(consumer).map_err(QueueError::Name)?;
        let last_job = self.inner.last_job.load(Ordering::Relaxed);
        let wanted = settings::consumer(consumer, subjects::consumer_jobs(consumer));
        self.ensure_consumer(JOBS_STREAM, wanted, last_job).await.map(|info| info.depth())
    }

    /// Counts the jobs on the stream, delivered or not, by consumer and tool.
    pub async fn unclaimed_jobs(&self) -> Result<HashMap<(String, String), Unclaimed>, QueueError> {
        let request = serde_json::json!({"subjects_filter": "redial.jobs.>"});
        let info: StreamInfo = self.api(&format!("STREAM.INFO.{JOBS_STREAM}"), body(&request)?).await?;
        let subjects = info.state.subjects.unwrap_or_default();
        let mut unclaimed: HashMap<(String, String), Unclaimed> = HashMap::new();
        for (subject, messages) in &subjects {
            if let Some((consumer, tool, jobs)) = subjects::read_job(subject) {
                let of_tool = unclaimed.entry((consumer.to_owned(), tool.to_owned())).or_default();
                of_tool.messages += messages;
                of_tool.jobs += messages * jobs;
            }
        }
        Ok(unclaimed)
    }

    /// Fails with `Missing` if the consumer or its stream does not exist.
    pub(crate) async fn check_consumer(&self, stream: &str, name: &str) -> Result<(), QueueError> {
        self.consumer_info(stream, name).await.map(|_| ())
    }

    /// Returns how far the dispatchers' consumer of a stream is.
    pub(crate) async fn progress(&self, stream: &str) -> Result<Progress, QueueError> {
        let info = self.consumer_info(stream, DISPATCHERS).await?;
        Ok(Progress {
            answered_to: info.ack_floor.stream_seq,
            delivered_to: info.delivered.stream_seq,
            unanswered: info.num_ack_pending,
        })
    }

    async fn ensure_shared(&self, stream: &str, subject: &str) -> Result<(), QueueError> {
        let last = self.ensure_stream(stream, subject).await?.state.last_seq;
        self.ensure_consumer(stream, settings::consumer(DISPATCHERS, String::new()), last).await.map(|_| ())
    }

    async fn ensure_stream(&self, name: &str, subject: &str) -> Result<StreamInfo, QueueError> {
        let wanted = StreamConfig { num_replicas: self.replicas_at_creation(), ..settings::stream(name, subject) };
        let info: StreamInfo = match self.api(&format!("STREAM.INFO.{name}"), Vec::new()).await {
            Err(QueueError::Missing { .. }) => {
                // Boxed, because it is rare and would make the futures of all callers large.
                let created = Box::pin(self.create_stream(&wanted)).await?;
                tracing::info!(stream = name, "Created a stream");
                Ok(created)
            }
            found => found,
        }?;
        compare_stream(&wanted, &info.config)?;
        // Boxed, because it is rare.
        Box::pin(self.replicate(&info.config)).await;
        Ok(info)
    }

    /// Creates a stream. A cluster that lacks servers keeps it on one of them, until the next check finds the others.
    async fn create_stream(&self, wanted: &StreamConfig) -> Result<StreamInfo, QueueError> {
        match self.create_stream_as(wanted).await {
            Err(QueueError::TooFewServers { .. }) if wanted.num_replicas > 1 => {
                self.create_stream_as(&StreamConfig { num_replicas: 1, ..wanted.clone() }).await
            }
            done => done,
        }
    }

    /// Creates a stream as wanted. A server with little room cannot promise the bytes; it then refuses messages when it
    /// is full.
    async fn create_stream_as(&self, wanted: &StreamConfig) -> Result<StreamInfo, QueueError> {
        let subject = format!("STREAM.CREATE.{}", wanted.name);
        match self.api(&subject, body(wanted)?).await {
            Err(QueueError::Full { .. }) => {
                tracing::warn!(
                    stream = wanted.name,
                    bytes = wanted.max_bytes,
                    "NATS has too little room to limit a stream"
                );
                self.api(&subject, body(&StreamConfig { max_bytes: -1, ..wanted.clone() })?).await
            }
            done => done,
        }
    }

    /// Creates a consumer if it is missing, and checks it. `last`: the stream's last message when it was checked. A
    /// consumer that is beyond it has either delivered newer messages or is ahead of its stream; only then the stream
    /// is asked again.
    async fn ensure_consumer(
        &self,
        stream: &str,
        wanted: ConsumerConfig,
        last: u64,
    ) -> Result<ConsumerInfo, QueueError> {
        let name = &wanted.durable_name;
        let info = match self.consumer_info(stream, name).await {
            Err(QueueError::Missing { .. }) => Box::pin(self.create_consumer(stream, &wanted)).await,
            found => found,
        }?;
        compare_consumer(stream, &wanted, &info.config)?;
        let delivered = info.delivered.stream_seq;
        if delivered <= last {
            return Ok(info);
        }
        // Asked after the consumer: the stream has all that the consumer has delivered.
        let last = self.api::<StreamInfo>(&format!("STREAM.INFO.{stream}"), Vec::new()).await?.state.last_seq;
        if delivered <= last {
            return Ok(info);
        }
        // The stream lost messages while the consumer kept its progress, as after a full disk: it would deliver nothing
        // until the stream gets there again (measured with 2.9.10).
        tracing::warn!(stream, consumer = name, delivered, last, "Found a consumer that is ahead of its stream");
        let _deleted: Value = self.api(&format!("CONSUMER.DELETE.{stream}.{name}"), Vec::new()).await?;
        Box::pin(self.create_consumer(stream, &wanted)).await
    }

    async fn create_consumer(&self, stream: &str, wanted: &ConsumerConfig) -> Result<ConsumerInfo, QueueError> {
        let name = &wanted.durable_name;
        let request = serde_json::json!({"stream_name": stream, "config": wanted});
        let created = self.api(&format!("CONSUMER.DURABLE.CREATE.{stream}.{name}"), body(&request)?).await?;
        tracing::info!(stream, consumer = name, "Created a consumer");
        Ok(created)
    }

    async fn consumer_info(&self, stream: &str, name: &str) -> Result<ConsumerInfo, QueueError> {
        self.api(&format!("CONSUMER.INFO.{stream}.{name}"), Vec::new()).await.map_err(|error| match error {
            QueueError::Missing { .. } => QueueError::Missing { name: format!("consumer {name} of stream {stream}") },
            other => other,
        })
    }
}

impl ConsumerInfo {
    const fn depth(&self) -> ConsumerDepth {
        ConsumerDepth {
            pending: self.num_pending,
            unacked: self.num_ack_pending,
            redelivered: self.num_redelivered,
            waiting_pulls: self.num_waiting,
        }
    }
}

pub(crate) fn body<T: Serialize>(request: &T) -> Result<Vec<u8>, QueueError> {
    serde_json::to_vec(request).map_err(|error| QueueError::nats("JetStream request", &error))
}
