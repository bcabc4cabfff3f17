//! The spans that several services share.

use tracing::{Span, field::Empty, info_span};

use crate::{context::is_valid, current_traceparent, is_exporting, set_parent};

/// The span of one submission, child of what the sender was doing, and the trace context that the call keeps: all its
/// attempts hang from it, whichever process runs them. When traces are not exported there is no span, and the call
/// keeps what was sent with it. Text that is no trace context is dropped.
pub fn submit_call(tool: &str, traceparent: Option<String>) -> (Span, Option<String>) {
    let traceparent = traceparent.filter(|text| is_valid(text));
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

/// The span of one attempt of a tool, with the names of OpenTelemetry's GenAI conventions. Give it its parent with
/// [`crate::set_parent`] before it is entered. No span at all when traces are not exported.
///
/// Arguments and results are not in it: they may hold what must not leave the process.
pub fn execute_tool(tool: &str, call: &str, attempt: u32) -> Span {
    if !is_exporting() {
        return Span::none();
    }
    // The names are those of `names`: a field must be a literal here.
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

/// Records, in the call's trace, that the result of an attempt is on record.
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
    crate::set_parent(&span, traceparent);
    if let Some(class) = error_class {
        record_error(&span, class);
    }
    span.in_scope(|| {});
}

/// Says that what the span describes failed with an error class.
pub fn record_error(span: &Span, class: &str) {
    span.record("otel.status_code", "ERROR");
    span.record(crate::names::ERROR_TYPE, class);
}
