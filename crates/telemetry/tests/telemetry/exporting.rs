//! With a collector: spans and metrics arrive, a call is one trace over all processes, secrets are not exported.

use std::time::Duration;

use opentelemetry_proto::tonic::{
    common::v1::KeyValue,
    metrics::v1::{Metric, NumberDataPoint, metric::Data, number_data_point::Value},
};
use redial_telemetry::{
    ChatReply, TelemetryConfig, chat, current_traceparent, execute_tool, init, metrics, record_chat, record_error,
    set_parent, submit_call,
};
use tracing::{Instrument as _, info_span};

use crate::{
    Reply,
    collector::{self, attribute, spans},
    process::{everything, run, said},
};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Accepts a call as a dispatcher, with the context of its sender in `CALL`, and prints the call's own.
#[tokio::test]
#[ignore = "a process that the other tests start"]
async fn dispatcher() {
    let telemetry = init(&TelemetryConfig::new("redial-dispatcher", "d1")).unwrap();
    only_asks();
    let (span, traceparent) = submit_call("book_flight", std::env::var("CALL").ok());
    println!("traceparent={}", traceparent.unwrap());
    drop(span);
    info_span!(target: "hyper", "not ours").in_scope(|| ());
    metrics().calls_submitted("book_flight", "accepted", 2);
    metrics().call_finished("book_flight", "failed", Some("timeout"));
    metrics().queue_age(Duration::from_millis(40));
    metrics().batch_size("submit", 2);
    telemetry.shutdown().await;
}

/// Asks only whether a log line is enabled, as some libraries do before they log: the next span must still be made.
fn only_asks() {
    let foreign = info_span!(target: "library", "foreign");
    let metadata = foreign.metadata().unwrap();
    assert!(tracing::dispatcher::get_default(|dispatch| dispatch.enabled(metadata)), "the log wants it, the trace not");
}

/// Runs two attempts of the call whose context is in `CALL`, as a worker.
#[tokio::test]
#[ignore = "a process that the other tests start"]
async fn worker() {
    let telemetry = init(&TelemetryConfig::new("redial-worker", "w1")).unwrap();
    let parent = std::env::var("CALL").unwrap();
    for attempt in 1..=2 {
        let span = execute_tool("book_flight", "0192", attempt);
        set_parent(&span, &parent);
        if attempt == 1 {
            record_error(&span, "unavailable");
        }
        println!("traceparent={}", span.in_scope(current_traceparent).unwrap());
        metrics().attempt_finished("book_flight", (attempt == 1).then_some("unavailable"), Duration::from_secs(2));
    }
    telemetry.shutdown().await;
}

/// Asks a model twice, as a worker; the second attempt is answered.
#[tokio::test]
#[ignore = "a process that the other tests start"]
async fn model_worker() {
    let telemetry = init(&TelemetryConfig::new("redial-worker", "w1")).unwrap();
    for attempt in 1..=2 {
        let span = chat("small", Some("c1"), "0192", attempt);
        async {
            tokio::task::yield_now().await;
            match attempt {
                1 => record_error(&tracing::Span::current(), "rate_limited"),
                _ => record_chat(ChatReply {
                    model: "small-2",
                    finish: "stop",
                    input_tokens: Some(7),
                    output_tokens: Some(3),
                }),
            }
        }
        .instrument(span)
        .await;
    }
    telemetry.shutdown().await;
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[tokio::test]
async fn one_call_is_one_trace_over_processes_and_attempts() {
    let collector = collector::start(Reply::status(200)).await;
    let output = everything(&run("exporting::dispatcher", &[(ENDPOINT, &collector.url(""))]).await);
    let call = said(&output, "traceparent=");
    run("exporting::worker", &[(ENDPOINT, &collector.url("")), ("CALL", call)]).await;

    let posts = collector.requests();
    let spans = spans(&posts);
    let shown: Vec<_> = spans.iter().map(|(_, span)| span.name.as_str()).collect();
    assert_eq!(shown, ["submit", "execute_tool book_flight", "execute_tool book_flight"]);
    let submit = &spans[0].1;
    assert_eq!(call, format!("00-{}-{}-01", hex(&submit.trace_id), hex(&submit.span_id)));
    assert!(submit.parent_span_id.is_empty());
    for (resource, attempt) in &spans[1..] {
        assert_eq!(attempt.trace_id, submit.trace_id);
        assert_eq!(attempt.parent_span_id, submit.span_id);
        let named = pairs(&resource.attributes, &["service.instance", "service.name"]);
        assert_eq!(named, "service.instance.id=w1 service.name=redial-worker");
    }
    for ((_, attempt), own) in spans[1..].iter().zip(["error.type=unavailable redial.attempt=1", "redial.attempt=2"]) {
        assert_eq!(pairs(&attempt.attributes, &["error.type", "redial.attempt"]), own);
        assert_eq!(
            attempt.status.as_ref().map_or(0, |status| status.code) == 2,
            own.starts_with("error"),
            "2 is ERROR"
        );
        let named = "gen_ai.operation.name=execute_tool gen_ai.tool.call.id=0192 gen_ai.tool.name=book_flight \
                     gen_ai.tool.type=function";
        assert_eq!(pairs(&attempt.attributes, &["gen_ai."]), named);
    }
    let metrics = collector::metrics(&posts);
    for (name, wanted) in [
        ("redial.calls.submitted", &["2 gen_ai.tool.name=book_flight redial.submit.status=accepted"][..]),
        ("redial.calls.finished", &["1 error.type=timeout gen_ai.tool.name=book_flight redial.call.state=failed"]),
        (
            "redial.attempts.finished",
            &["1 error.type=unavailable gen_ai.tool.name=book_flight", "1 gen_ai.tool.name=book_flight"],
        ),
        ("redial.queue.age", &["0.04 s"]),
        ("redial.batch.size", &["2 {item}"]),
        ("redial.attempt.duration", &["4 s"]),
    ] {
        assert_eq!(told(&metrics, name), wanted, "{name}");
    }
}

#[tokio::test]
async fn a_submission_belongs_to_the_trace_of_its_sender_and_the_operator_names_the_service() {
    let collector = collector::start(Reply::status(200)).await;
    let sender = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let resource = ("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=pod-7,deployment.environment.name=staging");
    let variables = [(ENDPOINT, &*collector.url("")), ("CALL", sender), ("OTEL_SERVICE_NAME", "calls"), resource];
    let output = everything(&run("exporting::dispatcher", &variables).await);
    let (resource, submit) = spans(&collector.requests()).remove(0);
    let named = pairs(&resource.attributes, &["deployment", "service.instance", "service.name"]);
    assert_eq!(named, "deployment.environment.name=staging service.instance.id=pod-7 service.name=calls");
    assert!(attribute(&resource.attributes, "service.version").is_some());
    assert_eq!(hex(&submit.trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(hex(&submit.parent_span_id), "b7ad6b7169203331");
    assert_eq!(attribute(&submit.attributes, "gen_ai.tool.name").as_deref(), Some("book_flight"));
    assert!(said(&output, "traceparent=").contains(&hex(&submit.span_id)), "{output}");
}

#[tokio::test]
async fn a_model_that_is_asked_has_the_genai_names() {
    let collector = collector::start(Reply::status(200)).await;
    run("exporting::model_worker", &[(ENDPOINT, &collector.url(""))]).await;
    let spans = spans(&collector.requests());
    for ((_, span), own) in spans.iter().zip([
        "error.type=rate_limited",
        "gen_ai.response.finish_reasons=[\"stop\"] gen_ai.response.model=small-2 gen_ai.usage.input_tokens=7 \
         gen_ai.usage.output_tokens=3",
    ]) {
        assert_eq!((span.name.as_str(), span.kind), ("chat small", 3), "3 is CLIENT");
        let told = pairs(&span.attributes, &["error.type", "gen_ai.response", "gen_ai.usage"]);
        assert_eq!(told, own);
        let told =
            pairs(&span.attributes, &["gen_ai.operation", "gen_ai.request", "gen_ai.conversation", "redial.call"]);
        let asked =
            "gen_ai.conversation.id=c1 gen_ai.operation.name=chat gen_ai.request.model=small redial.call.id=0192";
        assert_eq!(told, asked);
    }
    assert_eq!(spans.len(), 2);
}

/// Returns the attributes of these beginnings, sorted.
fn pairs(attributes: &[KeyValue], of: &[&str]) -> String {
    let keys = attributes.iter().map(|one| one.key.as_str()).filter(|key| of.iter().any(|of| key.starts_with(of)));
    let mut pairs: Vec<_> = keys.map(|key| format!("{key}={}", attribute(attributes, key).unwrap())).collect();
    pairs.sort();
    pairs.join(" ")
}

#[tokio::test]
async fn a_call_that_is_not_sampled_is_exported_by_no_process() {
    let collector = collector::start(Reply::status(200)).await;
    let off = ("OTEL_TRACES_SAMPLER", "always_off");
    let output = everything(&run("exporting::dispatcher", &[(ENDPOINT, &collector.url("")), off]).await);
    let call = said(&output, "traceparent=");
    assert!(call.ends_with("-00"), "{call}");
    run("exporting::worker", &[(ENDPOINT, &collector.url("")), ("CALL", call)]).await;
    assert!(spans(&collector.requests()).is_empty());
}

/// Returns the points of a counter, each a value with its attributes; the sum of a histogram with its unit.
fn told(metrics: &[Metric], name: &str) -> Vec<String> {
    let metric =
        metrics.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("no {name} in {metrics:?}"));
    match &metric.data {
        Some(Data::Sum(sum)) => {
            let point = |point: &NumberDataPoint| {
                let Some(Value::AsInt(value)) = point.value else { panic!("{name} counts in floats") };
                format!("{value} {}", pairs(&point.attributes, &[""]))
            };
            let mut points: Vec<_> = sum.data_points.iter().map(point).collect();
            points.sort();
            points
        }
        Some(Data::Histogram(histogram)) => {
            let total: f64 = histogram.data_points.iter().filter_map(|point| point.sum).sum();
            vec![format!("{} {}", (total * 1000.0).round() / 1000.0, metric.unit)]
        }
        other => panic!("{name} is {other:?}"),
    }
}

#[tokio::test]
async fn headers_reach_the_collector_and_never_the_logs() {
    let collector = collector::start(Reply::status(500)).await;
    let secret = ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer canary-7f3a");
    let output = run("exporting::dispatcher", &[(ENDPOINT, &collector.url("")), secret]).await;
    let posts = collector.requests();
    assert!(!posts.is_empty());
    assert!(posts.iter().all(|post| post.header("authorization") == Some("Bearer canary-7f3a")));
    let printed = everything(&output);
    assert!(printed.contains("xport"), "the failed export is logged: {printed}");
    assert!(!printed.contains("canary-7f3a"), "{printed}");
}

#[tokio::test]
async fn a_silent_collector_does_not_block_the_process() {
    let collector = collector::start(Reply::status(200).after(Duration::from_hours(1))).await;
    let patient = [(ENDPOINT, &*collector.url("")), ("OTEL_EXPORTER_OTLP_TIMEOUT", "120000")];
    tokio::time::timeout(Duration::from_mins(1), run("exporting::dispatcher", &patient)).await.expect("it is blocked");
    assert!(!collector.requests().is_empty());
}
