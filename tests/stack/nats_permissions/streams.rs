//! The streams, as a dispatcher makes and sees them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::client::Client;

/// Each stream with its subjects and its consumers.
const STREAMS: [(&str, &str, &[&str]); 3] = [
    ("JOBS", "redial.jobs.>", &["default", "models", "default+2"]),
    ("RESULTS", "redial.results.>", &["dispatchers"]),
    ("INTAKE", "redial.intake.>", &["dispatchers"]),
];

/// Creates what is missing.
pub(crate) async fn create(dispatcher: &mut Client) {
    for (stream, subjects, consumers) in STREAMS {
        let config = json!({
            "name": stream, "subjects": [subjects], "retention": "workqueue", "storage": "file", "discard": "new",
            "num_replicas": 1,
        });
        let done = dispatcher.api(&format!("STREAM.CREATE.{stream}"), &config).await;
        assert!(done["error"].is_null(), "{done}");
        for consumer in consumers {
            let mut config = json!({"durable_name": consumer, "ack_policy": "explicit", "max_deliver": -1});
            if stream == "JOBS" {
                config["filter_subject"] = format!("redial.jobs.{consumer}.>").into();
            }
            let request = json!({"stream_name": stream, "config": config});
            let done = dispatcher.api(&format!("CONSUMER.DURABLE.CREATE.{stream}.{consumer}"), &request).await;
            assert!(done["error"].is_null(), "{done}");
        }
    }
}

/// The number of messages of each subject of each stream, and the consumers that exist.
pub(crate) async fn state(dispatcher: &mut Client) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (stream, _, consumers) in STREAMS {
        let info = dispatcher.api(&format!("STREAM.INFO.{stream}"), &json!({"subjects_filter": ">"})).await;
        for (subject, count) in info["state"]["subjects"].as_object().into_iter().flatten() {
            found.insert(format!("{stream} {subject}"), count.as_u64().unwrap());
        }
        for consumer in consumers {
            let info: Value = dispatcher.api(&format!("CONSUMER.INFO.{stream}.{consumer}"), &json!({})).await;
            if info["error"].is_null() {
                found.insert(format!("{stream} consumer {consumer}"), 1);
            }
        }
    }
    found
}
