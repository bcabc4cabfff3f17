//! One call is one trace, over processes and attempts.

#[expect(dead_code, reason = "the telemetry crate's own tests use more of it")]
#[path = "../../crates/telemetry/tests/support/collector.rs"]
mod collector;

use collector::{Answer, Collector, attribute};
use opentelemetry_proto::tonic::{resource::v1::Resource, trace::v1::Span};
use redial_testkit::{Process, Reply, ScriptedHttp, Servers, Stack};
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

fn role(name: &str, collector: &Collector, arguments: &[&str]) -> Process {
    Process::start(env!("CARGO_BIN_EXE_redial"), |command| {
        command.arg(name).args(arguments).env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url());
    })
}

fn service(resource: &Resource) -> String {
    attribute(&resource.attributes, "service.name").unwrap()
}

#[tokio::test]
async fn a_call_with_a_retry_is_one_trace_over_dispatcher_and_worker() {
    let (collector, server) = (Collector::start(Answer::Ok).await, ScriptedHttp::start().await);
    server.script("/stock", [Reply::status(503), Reply::json("3")]);
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("tools.toml");
    std::fs::write(&manifest, MANIFEST.replace("URL", &server.url("/stock"))).unwrap();
    let stack = Stack::on(Servers::start().await).await;
    let (nats, database) = (stack.servers.nats_url(), stack.servers.database_url());
    let dispatcher = role("dispatcher", &collector, &["--nats-url", nats, "--database-url", database]);
    dispatcher.line("dispatcher is ready").await;
    let worker = role("worker", &collector, &["--nats-url", nats, "--tools", manifest.to_str().unwrap()]);
    stack.offered(&["stock"]).await;
    let call = stack.call("stock", json!({})).await;
    assert_eq!(stack.output(call).await, "3");
    // What was not exported yet is exported at the end.
    for process in [&worker, &dispatcher] {
        process.terminate();
        assert!(process.ended().await.success(), "{}", process.output());
    }
    let posts = collector.posts();
    let spans: Vec<(Resource, Span)> =
        posts.iter().filter(|post| post.path == "/v1/traces").flat_map(collector::Post::spans).collect();
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
    for request in server.requests() {
        let told = request.header("traceparent").expect("the tool's own service is told of the trace").to_owned();
        assert!(told.contains(&hex(&submit.trace_id)), "{told}");
    }
    stack.finish().await;
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
