//! Streams and consumers: created if missing, then read back and compared, because an older server silently ignores
//! settings that it does not know. Only settings known to nats-server 2.9 are used.
//!
//! What an operator may tune (limits, replicas, ack wait) is set at creation and left alone afterwards; only settings
//! that correctness depends on are compared.

use std::{sync::atomic::Ordering, time::Duration};

use chrono::{DateTime, Utc};
use redial_proto::{
    subjects::{self, DISPATCHERS, INTAKE_STREAM, JOBS_STREAM, RESULTS_STREAM},
    tool::check_name,
};
use serde::{Deserialize, Serialize};

use crate::{Queue, QueueError};

/// Messages a stream takes before it refuses more (`discard: new`): publishers back off, nothing is dropped.
const MAX_MESSAGES: i64 = 1_000_000;
/// A delivered message that is not answered is delivered again after this long.
const ACK_WAIT: Duration = Duration::from_secs(30);
/// Open pull requests of a consumer; the default of 512 limits a pool to 512 workers.
const MAX_WAITING: i64 = 4096;
/// Most messages of a consumer that may be delivered and not answered.
const MAX_ACK_PENDING: i64 = 500_000;

/// The state of the job stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    /// When the job stream was created. If this changes, the store was wiped: every job must be published again.
    pub jobs_created: DateTime<Utc>,
    /// Messages on the job stream, delivered or not.
    pub jobs: u64,
}

/// The waiting jobs of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Jobs that were not delivered to a worker yet.
    pub pending: u64,
    /// Jobs that were delivered to a worker and not answered.
    pub unacked: u64,
    /// Pulls that wait for jobs. While there are some, pending jobs exist only in the count: after a crash nats-server may
    /// count jobs that it does not have (measured with 2.9.10).
    pub waiting_pulls: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StreamConfig {
    name: String,
    subjects: Vec<String>,
    retention: String,
    discard: String,
    storage: String,
    max_msgs: i64,
    num_replicas: u32,
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
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ConsumerConfig {
    durable_name: String,
    deliver_policy: String,
    ack_policy: String,
    /// In ns.
    ack_wait: u64,
    max_deliver: i64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    filter_subject: String,
    replay_policy: String,
    #[serde(default)]
    max_waiting: i64,
    #[serde(default)]
    max_ack_pending: i64,
}

#[derive(Deserialize)]
struct ConsumerInfo {
    config: ConsumerConfig,
    delivered: Delivered,
    num_pending: u64,
    num_ack_pending: u64,
    #[serde(default)]
    num_waiting: u64,
}

#[derive(Deserialize)]
struct Delivered {
    /// Sequence number of the last message that was delivered.
    stream_seq: u64,
}

impl Queue {
    /// Creates the streams and the dispatchers' consumers if they are missing, and checks them. Idempotent and a few
    /// parallel round trips: call it every second, as the health check.
    pub async fn ensure_streams(&self) -> Result<Streams, QueueError> {
        let (jobs, results, intake) = tokio::join!(
            self.ensure_stream(JOBS_STREAM, "redial.jobs.>"),
            self.ensure_shared(RESULTS_STREAM, subjects::RESULTS),
            self.ensure_shared(INTAKE_STREAM, "redial.intake.>"),
        );
        results?;
        intake?;
        let jobs = jobs?;
        self.inner.last_job.store(jobs.state.last_seq, Ordering::Relaxed);
        Ok(Streams { jobs_created: jobs.created, jobs: jobs.state.messages })
    }

    /// Creates a pool's consumer if it is missing, and checks it.
    pub async fn ensure_pool(&self, pool: &str) -> Result<(), QueueError> {
        check_name("pool", pool).map_err(QueueError::Name)?;
        let last_job = self.inner.last_job.load(Ordering::Relaxed);
        self.ensure_consumer(JOBS_STREAM, consumer(pool, subjects::pool_jobs(pool)), last_job).await
    }

    /// The waiting jobs of a pool; `Missing` if its consumer was not created yet.
    pub async fn pool_backlog(&self, pool: &str) -> Result<Backlog, QueueError> {
        check_name("pool", pool).map_err(QueueError::Name)?;
        let info = self.consumer_info(JOBS_STREAM, pool).await?;
        let (pending, unacked) = (info.num_pending, info.num_ack_pending);
        Ok(Backlog { pending, unacked, waiting_pulls: info.num_waiting })
    }

    /// `Missing` if the consumer or its stream does not exist.
    pub(crate) async fn check_consumer(&self, stream: &str, name: &str) -> Result<(), QueueError> {
        self.consumer_info(stream, name).await.map(|_| ())
    }

    async fn ensure_shared(&self, stream: &str, subject: &str) -> Result<(), QueueError> {
        let last = self.ensure_stream(stream, subject).await?.state.last_seq;
        self.ensure_consumer(stream, consumer(DISPATCHERS, String::new()), last).await
    }

    async fn ensure_stream(&self, name: &str, subject: &str) -> Result<StreamInfo, QueueError> {
        let wanted = stream(name, subject);
        let info: StreamInfo = match self.api(&format!("STREAM.INFO.{name}"), Vec::new()).await {
            Err(QueueError::Missing { .. }) => {
                let created = self.api(&format!("STREAM.CREATE.{name}"), body(&wanted)?).await?;
                tracing::info!(stream = name, "Created a stream");
                Ok(created)
            }
            found => found,
        }?;
        compare_stream(&wanted, &info.config)?;
        Ok(info)
    }

    /// `last`: the stream's last message when it was checked. A consumer that is beyond it has either delivered newer
    /// messages or is ahead of its stream; only then the stream is asked again.
    async fn ensure_consumer(&self, stream: &str, wanted: ConsumerConfig, last: u64) -> Result<(), QueueError> {
        let name = &wanted.durable_name;
        let info = match self.consumer_info(stream, name).await {
            Err(QueueError::Missing { .. }) => self.create_consumer(stream, &wanted).await,
            found => found,
        }?;
        compare_consumer(stream, &wanted, &info.config)?;
        let delivered = info.delivered.stream_seq;
        if delivered <= last {
            return Ok(());
        }
        // Asked after the consumer: the stream has all that the consumer has delivered.
        let last = self.api::<StreamInfo>(&format!("STREAM.INFO.{stream}"), Vec::new()).await?.state.last_seq;
        if delivered <= last {
            return Ok(());
        }
        // The stream lost messages while the consumer kept its progress, as after a full disk: it would deliver nothing
        // until the stream gets there again (measured with 2.9.10).
        tracing::warn!(stream, consumer = name, delivered, last, "Found a consumer that is ahead of its stream");
        let _deleted: serde_json::Value = self.api(&format!("CONSUMER.DELETE.{stream}.{name}"), Vec::new()).await?;
        self.create_consumer(stream, &wanted).await.map(|_| ())
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

fn stream(name: &str, subject: &str) -> StreamConfig {
    StreamConfig {
        name: name.to_owned(),
        subjects: vec![subject.to_owned()],
        retention: "workqueue".to_owned(),
        discard: "new".to_owned(),
        storage: "file".to_owned(),
        max_msgs: MAX_MESSAGES,
        num_replicas: 1,
    }
}

fn consumer(name: &str, filter_subject: String) -> ConsumerConfig {
    ConsumerConfig {
        durable_name: name.to_owned(),
        deliver_policy: "all".to_owned(),
        ack_policy: "explicit".to_owned(),
        ack_wait: u64::try_from(ACK_WAIT.as_nanos()).unwrap_or(u64::MAX),
        // A message that reached a limit would stay on a work queue without an end.
        max_deliver: -1,
        filter_subject,
        replay_policy: "instant".to_owned(),
        max_waiting: MAX_WAITING,
        max_ack_pending: MAX_ACK_PENDING,
    }
}

fn compare_stream(wanted: &StreamConfig, found: &StreamConfig) -> Result<(), QueueError> {
    let name = format!("stream {}", wanted.name);
    compare(&name, "subjects", &wanted.subjects.join(","), &found.subjects.join(","))?;
    compare(&name, "retention", &wanted.retention, &found.retention)?;
    compare(&name, "discard", &wanted.discard, &found.discard)?;
    compare(&name, "storage", &wanted.storage, &found.storage)
}

fn compare_consumer(stream: &str, wanted: &ConsumerConfig, found: &ConsumerConfig) -> Result<(), QueueError> {
    let name = format!("consumer {} of stream {stream}", wanted.durable_name);
    compare(&name, "filter_subject", &wanted.filter_subject, &found.filter_subject)?;
    compare(&name, "deliver_policy", &wanted.deliver_policy, &found.deliver_policy)?;
    compare(&name, "ack_policy", &wanted.ack_policy, &found.ack_policy)?;
    compare(&name, "max_deliver", &wanted.max_deliver.to_string(), &found.max_deliver.to_string())
}

fn compare(name: &str, field: &'static str, wanted: &str, found: &str) -> Result<(), QueueError> {
    if wanted == found {
        return Ok(());
    }
    let (found, wanted) = (format!("{found:?}"), format!("{wanted:?}"));
    Err(QueueError::Settings { name: name.to_owned(), field, found, wanted })
}

fn body<T: Serialize>(request: &T) -> Result<Vec<u8>, QueueError> {
    serde_json::to_vec(request).map_err(|error| QueueError::nats("JetStream request", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_an_operator_tunes_are_left_alone() {
        let wanted = stream("JOBS", "redial.jobs.>");
        let tuned = StreamConfig { max_msgs: 5, num_replicas: 3, ..wanted.clone() };
        assert!(compare_stream(&wanted, &tuned).is_ok());
        let wanted = consumer("models", "redial.jobs.models.>".into());
        let tuned = ConsumerConfig { ack_wait: 1, max_ack_pending: 7, ..wanted.clone() };
        assert!(compare_consumer("JOBS", &wanted, &tuned).is_ok());
    }

    #[test]
    fn a_setting_that_correctness_depends_on_is_named_with_both_values() {
        let wanted = stream("JOBS", "redial.jobs.>");
        let wrong = StreamConfig { retention: "limits".into(), ..wanted.clone() };
        let error = compare_stream(&wanted, &wrong).unwrap_err().to_string();
        assert!(error.starts_with(r#"stream JOBS: retention is "limits"; "workqueue" is needed"#), "{error}");
        let wanted = consumer("models", "redial.jobs.models.>".into());
        let ignored = ConsumerConfig { filter_subject: String::new(), ..wanted.clone() };
        let error = compare_consumer("JOBS", &wanted, &ignored).unwrap_err().to_string();
        assert!(error.contains("consumer models of stream JOBS: filter_subject"), "{error}");
    }
}
