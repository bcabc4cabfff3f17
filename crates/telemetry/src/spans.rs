//! The spans that several services share.

use opentelemetry::{Array, StringValue, Value};
use redial_proto::traceparent;
use tracing::{Span, field::Empty, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::{current_traceparent, is_exporting, names, set_parent};

/// Makes the span of one submission, a child of the sender's span, and the trace context that the call keeps: the spans
/// of all its attempts are children of it, whichever process runs them. When traces are not exported there is no span,
/// and the call keeps the context that was sent with it. Text that is not a trace context is dropped.
pub fn submit_call(tool: &str, traceparent: Option<String>) -> (Span, Option<String>) {
    let traceparent = traceparent.filter(|text| traceparent::read(text).is_some());
    if !is_exporting() {
        return (Span::none(), traceparent);
    }
    let span = info_span!(
        target: "redial",
        "submit",
        otel.kind = "server",
        otel.status_code = Empty,
        gen_ai.tool.name = tool,
        error.r#type = Empty,
    );
    if let Some(parent) = &traceparent {
        set_parent(&span, parent);
    }
    let own = span.in_scope(current_traceparent);
    (span, own.or(traceparent))
}

/// Makes the span of one task's submission, as [`submit_call`]: the spans of all work on the task are children of it.
/// Its name is that of the conventions for the work of an agent. `agent`: its declared name.
pub fn submit_task(agent: Option<&str>, traceparent: Option<String>) -> (Span, Option<String>) {
    let traceparent = traceparent.filter(|text| traceparent::read(text).is_some());
    if !is_exporting() {
        return (Span::none(), traceparent);
    }
    let name = agent.map_or_else(|| "invoke_agent".to_owned(), |agent| format!("invoke_agent {agent}"));
    let span = info_span!(
        target: "redial",
        "invoke_agent",
        otel.name = name,
        otel.kind = "server",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = agent,
    );
    if let Some(parent) = &traceparent {
        set_parent(&span, parent);
    }
    let own = span.in_scope(current_traceparent);
    (span, own.or(traceparent))
}

/// Makes the span of one attempt of a tool, with the names of OpenTelemetry's GenAI conventions. Give it its parent
/// with [`crate::set_parent`] before it is entered. No span at all when traces are not exported.
///
/// It holds neither arguments nor results: they may contain data that must not leave the process.
pub fn execute_tool(tool: &str, call: &str, attempt: u32) -> Span {
    if !is_exporting() {
        return Span::none();
    }
    info_span!(
        target: "redial",
        "execute_tool",
        otel.name = format!("execute_tool {tool}"),
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        gen_ai.tool.call.id = call,
        gen_ai.tool.r#type = "function",
        redial.attempt = attempt,
        error.r#type = Empty,
    )
}

/// Makes the span of one attempt to ask a model, which is a call like any other: see [`execute_tool`]. `model` is the
/// name that agents use.
pub fn chat(model: &str, conversation: Option<&str>, call: &str, attempt: u32) -> Span {
    if !is_exporting() {
        return Span::none();
    }
    info_span!(
        target: "redial",
        "chat",
        otel.name = format!("chat {model}"),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.request.model = model,
        gen_ai.conversation.id = conversation,
        redial.call.id = call,
        redial.attempt = attempt,
        error.r#type = Empty,
    )
}

/// The part of a model's answer that its span records: neither text nor calls.
#[derive(Clone, Copy, Debug)]
pub struct ChatReply<'a> {
    /// The model, by the provider's own name.
    pub model: &'a str,
    pub finish: &'a str,
    /// Tokens that the model read, if the provider told them.
    pub input_tokens: Option<u64>,
    /// Tokens that it wrote, if the provider told them.
    pub output_tokens: Option<u64>,
}

/// Adds the answer to the current span, which is one of [`chat`].
pub fn record_chat(reply: ChatReply<'_>) {
    if !is_exporting() {
        return;
    }
    let span = Span::current();
    let number = |count: u64| Value::I64(i64::try_from(count).unwrap_or(i64::MAX));
    let finish = Array::String(vec![StringValue::from(reply.finish.to_owned())]);
    span.set_attribute(names::RESPONSE_MODEL, reply.model.to_owned());
    span.set_attribute(names::FINISH_REASONS, Value::Array(finish));
    for (name, count) in [(names::INPUT_TOKENS, reply.input_tokens), (names::OUTPUT_TOKENS, reply.output_tokens)] {
        if let Some(count) = count {
            span.set_attribute(name, number(count));
        }
    }
}

/// Adds to the call's trace that the result of an attempt is on record.
pub fn ingest_result(tool: &str, traceparent: &str, error_class: Option<&'static str>) {
    if !is_exporting() {
        return;
    }
    let span = info_span!(
        target: "redial",
        parent: None,
        "ingest_result",
        otel.name = format!("ingest {tool}"),
        otel.status_code = Empty,
        gen_ai.tool.name = tool,
        error.r#type = Empty,
    );
    set_parent(&span, traceparent);
    if let Some(class) = error_class {
        record_error(&span, class);
    }
    span.in_scope(|| {});
}

/// Marks the span as failed with an error class.
pub fn record_error(span: &Span, class: &str) {
    span.record("otel.status_code", "ERROR");
    span.record(names::ERROR_TYPE, class);
}
