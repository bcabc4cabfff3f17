//! With a collector: spans and metrics arrive, a call is one trace over all processes, secrets are not exported.

use std::time::Duration;

use opentelemetry_proto::tonic::{
    metrics::v1::{Metric, metric::Data, number_data_point::Value},
    resource::v1::Resource,
    trace::v1::Span,
};
use redial_telemetry::{
    ChatReply, TelemetryConfig, chat, current_traceparent, execute_tool, init, metrics, record_chat, record_error,
    set_parent, submit_call,
};
use tracing::{Instrument as _, info_span};

use crate::{
    collector::{Answer, Collector, Post, attribute},
    process::{everything, run, said},
};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// A dispatcher that accepts a call, with the context of its sender in `CALL`, and prints the call's own.
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

/// A worker that runs two attempts of the call whose context is in `CALL`.
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

/// A worker that asks a model twice; the second attempt is answered.
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

fn spans(collector: &Collector) -> Vec<(Resource, Span)> {
    spans_of(&collector.posts())
}

fn spans_of(posts: &[Post]) -> Vec<(Resource, Span)> {
    posts.iter().filter(|post| post.path == "/v1/traces").flat_map(Post::spans).collect()
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
    let collector = Collector::start(Answer::Ok).await;
    let output = everything(&run("exporting::dispatcher", &[(ENDPOINT, &collector.url())]).await);
    let call = said(&output, "traceparent=");
    run("exporting::worker", &[(ENDPOINT, &collector.url()), ("CALL", call)]).await;

    let posts = collector.posts();
    let spans = spans_of(&posts);
    let names: Vec<_> = spans.iter().map(|(_, span)| span.name.as_str()).collect();
    assert_eq!(names, ["submit", "execute_tool book_flight", "execute_tool book_flight"]);
    let submit = &spans[0].1;
    assert_eq!(call, format!("00-{}-{}-01", hex(&submit.trace_id), hex(&submit.span_id)));
    assert!(submit.parent_span_id.is_empty());
    for (resource, attempt) in &spans[1..] {
        assert_eq!(attempt.trace_id, submit.trace_id);
        assert_eq!(attempt.parent_span_id, submit.span_id);
        assert_eq!(attribute(&resource.attributes, "service.name").as_deref(), Some("redial-worker"));
        assert_eq!(attribute(&resource.attributes, "service.instance.id").as_deref(), Some("w1"));
    }
    assert_genai_names(&spans[1..]);
    let metrics = posts.iter().filter(|post| post.path == "/v1/metrics").flat_map(Post::metrics);
    assert_metrics(&metrics.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_submission_belongs_to_the_trace_of_its_sender_and_the_operator_names_the_service() {
    let collector = Collector::start(Answer::Ok).await;
    let sender = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let resource = ("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=pod-7,deployment.environment.name=staging");
    let variables = [(ENDPOINT, &*collector.url()), ("CALL", sender), ("OTEL_SERVICE_NAME", "calls"), resource];
    let output = everything(&run("exporting::dispatcher", &variables).await);
    let (resource, submit) = spans(&collector).remove(0);
    let of = |key| attribute(&resource.attributes, key);
    assert_eq!(of("service.name").as_deref(), Some("calls"));
    assert_eq!(of("service.instance.id").as_deref(), Some("pod-7"));
    assert_eq!(of("deployment.environment.name").as_deref(), Some("staging"));
    assert!(of("service.version").is_some());
    assert_eq!(hex(&submit.trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(hex(&submit.parent_span_id), "b7ad6b7169203331");
    assert_eq!(attribute(&submit.attributes, "gen_ai.tool.name").as_deref(), Some("book_flight"));
    assert!(said(&output, "traceparent=").contains(&hex(&submit.span_id)), "{output}");
}

/// Of two attempts of which the first failed.
fn assert_genai_names(spans: &[(Resource, Span)]) {
    let of = |index: usize, key: &str| attribute(&spans[index].1.attributes, key);
    for (index, attempt) in [(0, "1"), (1, "2")] {
        assert_eq!(of(index, "gen_ai.operation.name").as_deref(), Some("execute_tool"));
        assert_eq!(of(index, "gen_ai.tool.name").as_deref(), Some("book_flight"));
        assert_eq!(of(index, "gen_ai.tool.call.id").as_deref(), Some("0192"));
        assert_eq!(of(index, "gen_ai.tool.type").as_deref(), Some("function"));
        assert_eq!(of(index, "redial.attempt").as_deref(), Some(attempt));
    }
    assert_eq!(of(0, "error.type").as_deref(), Some("unavailable"));
    assert_eq!(spans[0].1.status.as_ref().unwrap().code, 2, "2 is ERROR");
    assert_eq!(of(1, "error.type"), None);
}

#[tokio::test]
async fn a_model_that_is_asked_has_the_genai_names() {
    let collector = Collector::start(Answer::Ok).await;
    run("exporting::model_worker", &[(ENDPOINT, &collector.url())]).await;
    let spans = spans(&collector);
    let of = |index: usize, key: &str| attribute(&spans[index].1.attributes, key);
    for index in [0, 1] {
        assert_eq!(spans[index].1.name, "chat small");
        assert_eq!(spans[index].1.kind, 3, "3 is CLIENT");
        assert_eq!(of(index, "gen_ai.operation.name").as_deref(), Some("chat"));
        assert_eq!(of(index, "gen_ai.request.model").as_deref(), Some("small"));
        assert_eq!(of(index, "gen_ai.conversation.id").as_deref(), Some("c1"));
        assert_eq!(of(index, "redial.call.id").as_deref(), Some("0192"));
    }
    assert_eq!(of(0, "error.type").as_deref(), Some("rate_limited"));
    assert_eq!(of(0, "gen_ai.response.model"), None);
    assert_eq!(of(1, "error.type"), None);
    assert_eq!(of(1, "gen_ai.response.model").as_deref(), Some("small-2"));
    assert_eq!(of(1, "gen_ai.response.finish_reasons").as_deref(), Some("[\"stop\"]"));
    assert_eq!(of(1, "gen_ai.usage.input_tokens").as_deref(), Some("7"));
    assert_eq!(of(1, "gen_ai.usage.output_tokens").as_deref(), Some("3"));
}

#[tokio::test]
async fn a_call_that_is_not_sampled_is_exported_by_no_process() {
    let collector = Collector::start(Answer::Ok).await;
    let off = ("OTEL_TRACES_SAMPLER", "always_off");
    let output = everything(&run("exporting::dispatcher", &[(ENDPOINT, &collector.url()), off]).await);
    let call = said(&output, "traceparent=");
    assert!(call.ends_with("-00"), "{call}");
    run("exporting::worker", &[(ENDPOINT, &collector.url()), ("CALL", call)]).await;
    assert!(spans(&collector).is_empty());
}

/// Of the dispatcher and the worker.
fn assert_metrics(metrics: &[Metric]) {
    assert_eq!(
        counts(metrics, "redial.calls.submitted"),
        [(2, "gen_ai.tool.name=book_flight redial.submit.status=accepted".to_owned())]
    );
    assert_eq!(
        counts(metrics, "redial.calls.finished"),
        [(1, "error.type=timeout gen_ai.tool.name=book_flight redial.call.state=failed".to_owned())]
    );
    assert_eq!(
        counts(metrics, "redial.attempts.finished"),
        [
            (1, "error.type=unavailable gen_ai.tool.name=book_flight".to_owned()),
            (1, "gen_ai.tool.name=book_flight".to_owned())
        ]
    );
    assert_eq!(sum(metrics, "redial.queue.age"), (0.04, "s"));
    assert_eq!(sum(metrics, "redial.batch.size"), (2.0, "{item}"));
    assert_eq!(sum(metrics, "redial.attempt.duration"), (4.0, "s"));
}

fn find<'a>(metrics: &'a [Metric], name: &str) -> &'a Metric {
    metrics.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("no {name} in {metrics:?}"))
}

/// The points of a counter: value, and sorted `key=value` pairs.
fn counts(metrics: &[Metric], name: &str) -> Vec<(i64, String)> {
    let Some(Data::Sum(sum)) = &find(metrics, name).data else { panic!("{name} is not a counter") };
    let point = |point: &opentelemetry_proto::tonic::metrics::v1::NumberDataPoint| {
        let Some(Value::AsInt(value)) = point.value else { panic!("{name} counts in floats") };
        let pair = |key: &str| format!("{key}={}", attribute(&point.attributes, key).unwrap());
        let mut pairs: Vec<_> = point.attributes.iter().map(|attribute| pair(&attribute.key)).collect();
        pairs.sort();
        (value, pairs.join(" "))
    };
    let mut points: Vec<_> = sum.data_points.iter().map(point).collect();
    points.sort_by(|a, b| a.1.cmp(&b.1));
    points
}

/// Sum over all points of a histogram, and its unit.
fn sum<'a>(metrics: &'a [Metric], name: &str) -> (f64, &'a str) {
    let metric = find(metrics, name);
    let Some(Data::Histogram(histogram)) = &metric.data else { panic!("{name} is not a histogram") };
    let total: f64 = histogram.data_points.iter().filter_map(|point| point.sum).sum();
    ((total * 1000.0).round() / 1000.0, &metric.unit)
}

#[tokio::test]
async fn headers_reach_the_collector_and_never_the_logs() {
    let collector = Collector::start(Answer::ServerError).await;
    let secret = ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer canary-7f3a");
    let output = run("exporting::dispatcher", &[(ENDPOINT, &collector.url()), secret]).await;
    let posts = collector.posts();
    assert!(!posts.is_empty());
    assert!(posts.iter().all(|post| post.head.contains("authorization: Bearer canary-7f3a")));
    let printed = everything(&output);
    assert!(printed.contains("xport"), "the failed export is logged: {printed}");
    assert!(!printed.contains("canary-7f3a"), "{printed}");
}

#[tokio::test]
async fn a_silent_collector_does_not_block_the_process() {
    let collector = Collector::start(Answer::Silence).await;
    let patient = [(ENDPOINT, &*collector.url()), ("OTEL_EXPORTER_OTLP_TIMEOUT", "120000")];
    tokio::time::timeout(Duration::from_mins(1), run("exporting::dispatcher", &patient)).await.expect("it is blocked");
    assert!(!collector.posts().is_empty());
}
