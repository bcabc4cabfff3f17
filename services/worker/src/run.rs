//! Run: one granted attempt, in its own task, until its deadline.

use std::{sync::Arc, time::Duration};

use redial_proto::{
    ErrorClass, Failure, Grant, JobRef,
    limits::{MAX_DEPTH, MAX_OUTPUT, json_depth, shorten},
    turn::model_name,
};
use redial_telemetry::{chat, current_traceparent, execute_tool, record_error, set_parent};
use redial_tools::{Context, ToolResult};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use crate::{attempts::Lease, deltas::DeltaPublisher, pool::Permit, state::WorkerState};

/// Bytes of an output over a limit that the error quotes.
const PREVIEW: usize = 500;

/// Starts a granted attempt. Its task reports the result, and returns the permit when the tool has ended.
pub(crate) fn start(state: &Arc<WorkerState>, grant: Grant, lease: Lease, permit: Permit) {
    let spawn = || {
        let span = span(&grant);
        if let Some(traceparent) = &grant.traceparent {
            set_parent(&span, traceparent);
        }
        let attempt = attempt(Arc::clone(state), grant, permit);
        state.tool_tasks.spawn(attempt.instrument(span)).abort_handle()
    };
    if !state.attempts.start(lease, spawn) {
        let JobRef { call, attempt } = lease.grant.job_ref();
        tracing::error!(%call, attempt, "Ignored a second grant of an active attempt");
    }
}

fn span(grant: &Grant) -> Span {
    let call = grant.call.to_string();
    match model_name(&grant.tool) {
        Some(model) => chat(model, grant.conversation.as_deref(), &call, grant.attempt),
        None => execute_tool(&grant.tool, &call, grant.attempt),
    }
}

async fn attempt(state: Arc<WorkerState>, grant: Grant, permit: Permit) {
    let (job, started) = (grant.job_ref(), Instant::now());
    let answer = checked(execute(&state, grant).await);
    let class = answer.as_ref().err().map(|failure| failure.class.as_str());
    // Before the report, so that the next job does not wait for it.
    drop(permit);
    // Keeps a draining worker alive between the end of the attempt and its report.
    let _pending = state.reports.pending_guard();
    if !state.attempts.finish(job) {
        return;
    }
    if let Some(class) = class {
        record_error(&Span::current(), class);
    }
    state.reports.send(job, started.elapsed(), answer);
}

/// Runs the tool, and drops its future at the deadline.
async fn execute(state: &WorkerState, grant: Grant) -> ToolResult {
    let Some(tool) = state.tools.get(&grant.tool) else {
        let message = format!("worker {} does not have tool {:?}", state.id, grant.tool);
        return Err(Failure::new(ErrorClass::Configuration, message).without_effect());
    };
    let traceparent = current_traceparent().or_else(|| grant.traceparent.clone());
    let context = Context { traceparent, ..Context::from(&grant) };
    // Watchers see what models write, not what tools do.
    let watched = grant.task.filter(|_| model_name(&grant.tool).is_some());
    let limit = context.timeout;
    let run = |context| tokio::time::timeout(limit, tool.run(context, grant.arguments));
    let end = if let Some(task) = watched {
        let (watchers, publisher) = DeltaPublisher::new(&state.queue, task);
        publisher.publish_during(run(Context { watchers, ..context })).await
    } else {
        run(context).await
    };
    end.unwrap_or_else(|_| Err(timed_out(&grant.tool, limit)))
}

fn timed_out(tool: &str, limit: Duration) -> Failure {
    let subject = model_name(tool).map_or("the tool".to_owned(), |model| format!("model {model:?}"));
    Failure::new(ErrorClass::Timeout, format!("{subject} did not finish within {} ms", limit.as_millis()))
}

/// Replaces an output over the limits with an error.
fn checked(answer: ToolResult) -> ToolResult {
    let output = answer?;
    let (bytes, depth) = (output.get().len(), json_depth(output.get()));
    let (class, wrong) = if bytes > MAX_OUTPUT {
        (ErrorClass::OutputTooLarge, format!("the output has {bytes} bytes; allowed: {MAX_OUTPUT}"))
    } else if depth > MAX_DEPTH {
        (ErrorClass::OutputInvalid, format!("the output nests {depth} levels deep; allowed: {MAX_DEPTH}"))
    } else {
        return Ok(output);
    };
    Err(Failure::new(class, format!("{wrong}; it starts: {}", preview(&output))))
}

fn preview(output: &RawValue) -> String {
    shorten(output.get(), PREVIEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: String) -> ToolResult {
        checked(Ok(RawValue::from_string(text).unwrap()))
    }

    #[test]
    fn outputs_within_the_limits_are_kept() {
        let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(output(text(MAX_OUTPUT)).is_ok());
        assert!(output(nested(MAX_DEPTH)).is_ok());
        let large = output(text(MAX_OUTPUT + 1)).unwrap_err();
        assert_eq!(large.class, ErrorClass::OutputTooLarge);
        assert!(large.message.len() < 700 && large.message.contains("524289 bytes; allowed: 524288"));
        let deep = output(nested(MAX_DEPTH + 1)).unwrap_err();
        assert_eq!(deep.class, ErrorClass::OutputInvalid);
        assert!(large.effect_possible && deep.effect_possible);
    }
}
