//! An OTLP/HTTP collector: a scripted server, and what was posted to it.

use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{AnyValue, KeyValue, any_value::Value},
    metrics::v1::Metric,
    resource::v1::Resource,
    trace::v1::{ResourceSpans, Span},
};
use prost::Message;

use super::{Reply, Request, ScriptedHttp};

/// Starts a collector that answers every post like this.
pub(crate) async fn start(answer: Reply) -> ScriptedHttp {
    let collector = ScriptedHttp::start().await;
    for path in ["/v1/traces", "/v1/metrics"] {
        collector.script(path, [answer.clone()]);
    }
    collector
}

/// Reads the spans of all posts, each with the resource that sent it.
pub(crate) fn spans(posts: &[Request]) -> Vec<(Resource, Span)> {
    let posts = posts.iter().filter(|post| post.path == "/v1/traces");
    let sent = posts.flat_map(|post| ExportTraceServiceRequest::decode(&*post.body).unwrap().resource_spans);
    let with_resource = |sent: ResourceSpans| {
        let resource = sent.resource.unwrap();
        sent.scope_spans.into_iter().flat_map(|scope| scope.spans).map(move |span| (resource.clone(), span))
    };
    sent.flat_map(with_resource).collect()
}

/// Reads the metrics of all posts.
pub(crate) fn metrics(posts: &[Request]) -> Vec<Metric> {
    let posts = posts.iter().filter(|post| post.path == "/v1/metrics");
    let sent = posts.flat_map(|post| ExportMetricsServiceRequest::decode(&*post.body).unwrap().resource_metrics);
    sent.flat_map(|sent| sent.scope_metrics).flat_map(|scope| scope.metrics).collect()
}

pub(crate) fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        Value::ArrayValue(list) => Some(format!("{:?}", list.values.iter().map(plain).collect::<Vec<_>>())),
        other => panic!("{key} is {other:?}"),
    }
}

fn plain(value: &AnyValue) -> &str {
    match &value.value {
        Some(Value::StringValue(text)) => text,
        other => panic!("a list of {other:?}"),
    }
}
