//! The trace context that travels with a call: W3C `traceparent` as text.

use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState},
};
use redial_proto::traceparent;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::is_exporting;

/// Returns the `traceparent` of the current span, to be sent along with a message. `None` when traces are not exported
/// or no span is current; then pass on the one that was received. A span that was not sampled is passed on too, with
/// flag `00`: otherwise the next process would start a new trace.
pub fn current_traceparent() -> Option<String> {
    if !is_exporting() {
        return None;
    }
    let context = Span::current().context();
    let span = context.span();
    span.span_context().is_valid().then(|| write(span.span_context()))
}

/// Makes `span` a child of the span that `traceparent` names. Call it before the span is entered or has children.
/// Text that is not a trace context is ignored: the span then keeps its own parent.
pub fn set_parent(span: &Span, traceparent: &str) {
    if !is_exporting() {
        return;
    }
    if let Some(parent) = parse(traceparent) {
        // Fails for a span that is disabled or already entered; then only the trace is cut here.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
}

fn write(span: &SpanContext) -> String {
    format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags() & TraceFlags::SAMPLED)
}

fn parse(text: &str) -> Option<SpanContext> {
    let mut fields = traceparent::read(text)?.split('-').skip(1);
    let (trace, span) = (TraceId::from_hex(fields.next()?).ok()?, SpanId::from_hex(fields.next()?).ok()?);
    let flags = TraceFlags::new(u8::from_str_radix(fields.next()?, 16).ok()?) & TraceFlags::SAMPLED;
    Some(SpanContext::new(trace, span, flags, true, TraceState::NONE))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_written_context_is_read_back() {
        assert_eq!(write(&parse(GOOD).unwrap()), GOOD);
        let unsampled = GOOD.replace("-01", "-00");
        assert!(!parse(&unsampled).unwrap().is_sampled());
        assert_eq!(write(&parse(&unsampled).unwrap()), unsampled);
        assert_eq!(parse(&GOOD.replace("-01", "-ff")).unwrap().trace_flags(), TraceFlags::SAMPLED);
        assert!(parse("00-nonsense").is_none());
    }
}
