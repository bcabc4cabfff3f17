//! The settings of streams and consumers, as nats-server takes them, and those that correctness depends on.

use std::time::Duration;

use redial_proto::subjects::{JOBS_STREAM, MAX_JOB_AGE};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::QueueError;

/// Messages a stream takes before it refuses more (`discard: new`): publishers back off, nothing is dropped. Dispatchers
/// publish far fewer jobs than this.
const MAX_MESSAGES: i64 = 1_000_000;
/// Bytes that the job stream takes.
const MAX_JOB_BYTES: i64 = 256 * 1024 * 1024;
/// Bytes that each of the other streams takes: reports and submissions that no dispatcher has processed yet.
const MAX_BYTES: i64 = 1024 * 1024 * 1024;
/// How long nats-server drops a job whose `Nats-Msg-Id` it knows.
const DUPLICATE_JOBS: Duration = Duration::from_mins(2);
/// How long nats-server drops a message of another stream whose id it knows: as short as it takes. The ids of all
/// senders of a stream are one namespace, so with a longer time a tenant could make it drop what another one submits.
const DUPLICATES: Duration = Duration::from_millis(100);
/// A delivered message that is not answered is delivered again after this long.
const ACK_WAIT: Duration = Duration::from_secs(30);
/// Open pull requests of a consumer; the default of 512 limits a pool to 512 workers.
const MAX_WAITING: i64 = 4096;
/// Most messages of a consumer that may be delivered and not answered.
const MAX_ACK_PENDING: i64 = 500_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StreamConfig {
    pub(super) name: String,
    pub(super) subjects: Vec<String>,
    pub(super) retention: String,
    pub(super) discard: String,
    pub(super) storage: String,
    pub(super) max_msgs: i64,
    pub(super) max_bytes: i64,
    /// In ns; 0 is no limit.
    #[serde(default)]
    pub(super) max_age: u64,
    /// In ns; 0 is the server's default, two minutes.
    #[serde(default)]
    pub(super) duplicate_window: u64,
    pub(super) num_replicas: u32,
    /// What an operator or the server itself added.
    #[serde(flatten)]
    pub(super) other: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ConsumerConfig {
    pub(super) durable_name: String,
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

pub(super) fn stream(name: &str, subject: &str) -> StreamConfig {
    let (max_bytes, max_age, duplicate_window) = match name {
        JOBS_STREAM => (MAX_JOB_BYTES, MAX_JOB_AGE, DUPLICATE_JOBS),
        _ => (MAX_BYTES, Duration::ZERO, DUPLICATES),
    };
    StreamConfig {
        name: name.to_owned(),
        subjects: vec![subject.to_owned()],
        retention: "workqueue".to_owned(),
        discard: "new".to_owned(),
        storage: "file".to_owned(),
        max_msgs: MAX_MESSAGES,
        max_bytes,
        max_age: nanoseconds(max_age),
        duplicate_window: nanoseconds(duplicate_window),
        num_replicas: 1,
        other: Map::new(),
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn consumer(name: &str, filter_subject: String) -> ConsumerConfig {
    ConsumerConfig {
        durable_name: name.to_owned(),
        deliver_policy: "all".to_owned(),
        ack_policy: "explicit".to_owned(),
        ack_wait: nanoseconds(ACK_WAIT),
        // A message that reached a limit would stay on a work queue without an end.
        max_deliver: -1,
        filter_subject,
        replay_policy: "instant".to_owned(),
        max_waiting: MAX_WAITING,
        max_ack_pending: MAX_ACK_PENDING,
    }
}

pub(super) fn compare_stream(wanted: &StreamConfig, found: &StreamConfig) -> Result<(), QueueError> {
    let name = format!("stream {}", wanted.name);
    compare(&name, "subjects", &wanted.subjects.join(","), &found.subjects.join(","))?;
    compare(&name, "retention", &wanted.retention, &found.retention)?;
    compare(&name, "discard", &wanted.discard, &found.discard)?;
    compare(&name, "storage", &wanted.storage, &found.storage)
}

pub(super) fn compare_consumer(
    stream: &str,
    wanted: &ConsumerConfig,
    found: &ConsumerConfig,
) -> Result<(), QueueError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_an_operator_tunes_are_left_alone_and_others_are_named_with_both_values() {
        let wanted = stream("JOBS", "redial.jobs.>");
        let wrong = StreamConfig { retention: "limits".into(), ..wanted.clone() };
        let error = compare_stream(&wanted, &wrong).unwrap_err().to_string();
        assert!(error.starts_with(r#"stream JOBS: retention is "limits"; "workqueue" is needed"#), "{error}");
        let tuned = StreamConfig { max_msgs: 5, num_replicas: 3, ..wanted.clone() };
        assert!(compare_stream(&wanted, &tuned).is_ok());
        let wanted = consumer("models", "redial.jobs.models.>".into());
        let ignored = ConsumerConfig { filter_subject: String::new(), ..wanted.clone() };
        let error = compare_consumer("JOBS", &wanted, &ignored).unwrap_err().to_string();
        assert!(error.contains("consumer models of stream JOBS: filter_subject"), "{error}");
        let tuned = ConsumerConfig { ack_wait: 1, max_ack_pending: 7, ..wanted.clone() };
        assert!(compare_consumer("JOBS", &wanted, &tuned).is_ok());
    }
}
