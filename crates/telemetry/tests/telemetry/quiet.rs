//! Without a collector: nothing is collected, no thread is started, nothing is sent.

use std::time::Duration;

use redial_telemetry::{
    TelemetryConfig, TelemetryError, current_traceparent, execute_tool, init, is_exporting, metrics, set_parent,
    submit_call,
};
use tracing::info_span;

use crate::{Reply, collector, process::run};

/// Counts and traces, and looks for its own exporter threads.
#[tokio::test]
#[ignore = "a process that the other tests start"]
async fn silent() {
    let telemetry = init(&TelemetryConfig::new("redial-worker", "w1")).unwrap();
    assert!(!is_exporting());
    let span = info_span!(target: "redial_worker", "claim");
    set_parent(&span, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    assert_eq!(span.in_scope(current_traceparent), None);
    assert!(execute_tool("book_flight", "0192", 1).is_disabled());
    let sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned();
    assert_eq!(submit_call("book_flight", Some(sent.clone())).1, Some(sent));
    assert_eq!(submit_call("book_flight", Some("nonsense".to_owned())).1, None);
    metrics().attempt_finished("book_flight", None, Duration::from_secs(1));
    assert_eq!(exporter_threads(), Vec::<String>::new());
    telemetry.shutdown().await;
}

/// Lists the exporter threads. Names of threads are cut to 15 characters by the kernel.
fn exporter_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.starts_with("OpenTelemetry") || name.starts_with("reqwest")).collect()
}

/// Exports, so that it has the threads that [`silent`] looks for.
#[tokio::test]
#[ignore = "a process that the other tests start"]
async fn exporting() {
    let telemetry = init(&TelemetryConfig::new("redial-worker", "w1")).unwrap();
    assert!(is_exporting());
    assert!(!exporter_threads().is_empty());
    let again = init(&TelemetryConfig::new("redial-worker", "w1"));
    assert!(matches!(again, Err(TelemetryError::AlreadyStarted)));
    telemetry.shutdown().await;
}

#[tokio::test]
async fn without_variables_there_is_no_exporter_and_a_disabled_sdk_sends_nothing() {
    run("quiet::silent", &[]).await;
    let collector = collector::start(Reply::status(200)).await;
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url(""));
    run("quiet::silent", &[endpoint, ("OTEL_SDK_DISABLED", "true")]).await;
    assert!(collector.requests().is_empty());
    run("quiet::exporting", &[endpoint]).await;
}
