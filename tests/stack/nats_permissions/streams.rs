//! The streams, as a dispatcher makes and sees them.

use std::collections::BTreeMap;

use redial_queue::Queue;
use redial_test_stack::RawNats;
use serde_json::{Value, json};

use super::server::Server;

/// Each stream with its consumers.
const STREAMS: [(&str, &[&str]); 3] =
    [("JOBS", &["default", "models", "default+2"]), ("RESULTS", &["dispatchers"]), ("INTAKE", &["dispatchers"])];

/// Creates what is missing.
pub(crate) async fn create(server: &Server) {
    let queue = Queue::connect(&server.config("dispatcher")).await.unwrap();
    queue.ensure_streams().await.unwrap();
    for consumer in STREAMS[0].1 {
        queue.ensure_jobs(consumer).await.unwrap();
    }
}

/// The number of messages of each subject of each stream, and the consumers that exist.
pub(crate) async fn state(dispatcher: &mut RawNats) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (stream, consumers) in STREAMS {
        let info = dispatcher.jetstream(&format!("STREAM.INFO.{stream}"), &json!({"subjects_filter": ">"})).await;
        for (subject, count) in info["state"]["subjects"].as_object().into_iter().flatten() {
            found.insert(format!("{stream} {subject}"), count.as_u64().unwrap());
        }
        for consumer in consumers {
            let info: Value = dispatcher.jetstream(&format!("CONSUMER.INFO.{stream}.{consumer}"), &json!({})).await;
            if info["error"].is_null() {
                found.insert(format!("{stream} consumer {consumer}"), 1);
            }
        }
    }
    found
}
