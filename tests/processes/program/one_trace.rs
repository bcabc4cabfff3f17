//! One call is one trace, over processes and attempts.

#[path = "../../../crates/telemetry/tests/telemetry/collector.rs"]
mod collector;

use collector::attribute;
use opentelemetry_proto::tonic::{
    metrics::v1::{metric::Data, number_data_point::Value},
    resource::v1::Resource,
    trace::v1::Span,
};
use redial_test_stack::{Process, Reply, Request, ScriptedHttp, Servers, Stack, until};
use redial_tools::Tool;
use serde_json::json;

const MANIFEST: &str = r#"
[[tool]]
name = "stock"
effect = "read"
retry = { initial = "1ms", cap = "1ms" }
[tool.http]
method = "GET"
url = "URL"
"#;

fn role(name: &str, collector: &ScriptedHttp, arguments: &[&str]) -> Process {
    Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
        command.arg(name).args(arguments).env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url(""));
        command.env("OTEL_METRIC_EXPORT_INTERVAL", "200");
    })
}

fn service(resource: &Resource) -> String {
    attribute(&resource.attributes, "service.name").unwrap()
}

#[tokio::test]
async fn a_call_with_a_retry_is_one_trace_over_dispatcher_and_worker() {
    let (collector, server) = (collector::start(Reply::status(200)).await, ScriptedHttp::start().await);
    server.script("/stock", [Reply::status(503), Reply::json("3")]);
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("tools.toml");
    std::fs::write(&manifest, MANIFEST.replace("URL", &server.url("/stock"))).unwrap();
    let stack = Stack::on(Servers::start().await).await;
    let (nats, database) = (stack.servers.nats_url(), stack.servers.database_url());
    let dispatcher = role("dispatcher", &collector, &["--nats-url", nats, "--database-url", database]);
    dispatcher.line("Dispatcher started").await;
    let worker = role("worker", &collector, &["--nats-url", nats, "--tools", manifest.to_str().unwrap()]);
    stack.offered(&["stock"]).await;
    let call = stack.call("stock", json!({})).await;
    assert_eq!(stack.output(call).await, "3");
    // The rest is exported at the end.
    for process in [&worker, &dispatcher] {
        process.terminate();
        assert!(process.ended().await.success(), "{}", process.output());
    }
    let spans = collector::spans(&collector.requests());
    let names = |of: &str| -> Vec<String> {
        let mut spans: Vec<&Span> =
            spans.iter().filter(|(from, _)| service(from) == of).map(|(_, span)| span).collect();
        spans.sort_by_key(|span| span.start_time_unix_nano);
        spans.into_iter().map(|span| span.name.clone()).collect()
    };
    assert_eq!(names("redial-dispatcher"), ["submit", "ingest stock", "ingest stock"]);
    assert_eq!(names("redial-worker"), ["execute_tool stock", "execute_tool stock"]);
    let submit = &spans.iter().find(|(_, span)| span.name == "submit").unwrap().1;
    for (_, span) in &spans {
        assert_eq!(span.trace_id, submit.trace_id, "{} is in another trace", span.name);
        assert!(span.name == "submit" || span.parent_span_id == submit.span_id, "{} hangs elsewhere", span.name);
    }
    let attempts = spans.iter().filter(|(_, span)| span.name == "execute_tool stock");
    let mut attempts: Vec<_> = attempts
        .map(|(_, span)| {
            let of = |key| attribute(&span.attributes, key);
            (of("redial.attempt"), of("gen_ai.tool.call.id"), of("error.type"))
        })
        .collect();
    attempts.sort();
    let id = Some(call.to_string());
    let one = |number: &str, error: Option<&str>| (Some(number.to_owned()), id.clone(), error.map(str::to_owned));
    assert_eq!(attempts, [one("1", Some("unavailable")), one("2", None)]);
    let trace = uuid::Uuid::from_slice(&submit.trace_id).unwrap().simple().to_string();
    for request in server.requests() {
        let parent = request.header("traceparent").expect("the tool's service gets the trace's header").to_owned();
        assert!(parent.contains(&trace), "{parent}");
    }
    stack.finish().await;
}

#[tokio::test]
async fn a_dispatcher_exports_how_many_calls_wait_in_a_pool() {
    let collector = collector::start(Reply::status(200)).await;
    let mut stack = Stack::on(Servers::start().await).await;
    let (nats, database) = (stack.servers.nats_url(), stack.servers.database_url());
    let dispatcher = role("dispatcher", &collector, &["--nats-url", nats, "--database-url", database]);
    dispatcher.line("Dispatcher started").await;
    stack.work(vec![Tool::echo().pool("default")]).await;
    stack.stop_workers().await;
    let mut calls = Vec::new();
    for n in 0..3 {
        calls.push(stack.call("echo", json!({ "n": n })).await);
    }
    until("the calls that wait", async || (waiting(&collector) == Some(3)).then_some(())).await;
    for call in calls {
        stack.cancel(call).await;
    }
    until("none any more", async || (waiting(&collector) == Some(0)).then_some(())).await;
    // It discards the jobs of the cancelled calls.
    stack.work(vec![Tool::echo().pool("default")]).await;
    stack.finish().await;
}

/// The last exported number of calls that wait in the pool of the tool.
fn waiting(collector: &ScriptedHttp) -> Option<i64> {
    let metrics = collector::metrics(&collector.requests()).into_iter();
    let points =
        metrics.filter(|metric| metric.name == "redial.queue.waiting").filter_map(|metric| match metric.data {
            Some(Data::Gauge(gauge)) => Some(gauge.data_points),
            _ => None,
        });
    let mut of_pool =
        points.flatten().filter(|it| attribute(&it.attributes, "redial.pool").as_deref() == Some("default"));
    of_pool.next_back().and_then(|point| match point.value {
        Some(Value::AsInt(value)) => Some(value),
        _ => None,
    })
}
