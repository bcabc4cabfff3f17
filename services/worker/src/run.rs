//! Run: one grant in a task of its own, under its deadline.

use std::{sync::Arc, time::Duration};

use redial_proto::{
    ErrorClass, Failure, Grant,
    limits::{MAX_DEPTH, MAX_OUTPUT, json_depth, shorten},
    turn::model_name,
};
use redial_telemetry::{chat, current_traceparent, execute_tool, record_error, set_parent};
use redial_tools::{Answer, Context};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use crate::{
    deltas::Deltas,
    held::Right,
    shared::{Shared, Slot},
};

/// Bytes of an output that breaks a limit, shown in the error.
const PREVIEW: usize = 500;

/// Starts a granted attempt; its end is reported. The slot is free again when the tool is gone.
pub(crate) fn start(shared: &Arc<Shared>, grant: Grant, right: Right, slot: Slot) {
    let spawn = || {
        let span = span(&grant);
        if let Some(traceparent) = &grant.traceparent {
            set_parent(&span, traceparent);
        }
        let attempt = attempt(Arc::clone(shared), grant, slot);
        shared.attempts.spawn(attempt.instrument(span)).abort_handle()
    };
    if !shared.held.start(right, spawn) {
        tracing::error!(call = %right.grant.call, attempt = right.grant.attempt, "granted twice; it runs once");
    }
}

fn span(grant: &Grant) -> Span {
    let call = grant.call.to_string();
    match model_name(&grant.tool) {
        Some(model) => chat(model, grant.conversation.as_deref(), &call, grant.attempt),
        None => execute_tool(&grant.tool, &call, grant.attempt),
    }
}

async fn attempt(shared: Arc<Shared>, grant: Grant, slot: Slot) {
    let (job, started) = (grant.job_ref(), Instant::now());
    let answer = checked(execute(&shared, grant).await);
    let class = answer.as_ref().err().map(|failure| failure.class.as_str());
    // Free before the report, so that the next job does not wait for it.
    drop(slot);
    // A worker that drains must not end between these two.
    let _coming = shared.reports.coming();
    if !shared.held.finish(job) {
        return;
    }
    if let Some(class) = class {
        record_error(&Span::current(), class);
    }
    shared.reports.send(job, started.elapsed(), answer);
}

/// Runs the tool; at the deadline its future is dropped.
async fn execute(shared: &Shared, grant: Grant) -> Answer {
    let Some(tool) = shared.tools.get(&grant.tool) else {
        let message = format!("worker {} does not have tool {:?}", shared.id, grant.tool);
        return Err(Failure::new(ErrorClass::Configuration, message).without_effect());
    };
    let traceparent = current_traceparent().or_else(|| grant.traceparent.clone());
    let context = Context { traceparent, ..Context::from(&grant) };
    // Only what a model writes is for watchers.
    let watched = grant.task.filter(|_| model_name(&grant.tool).is_some());
    let limit = context.timeout;
    let run = |context| tokio::time::timeout(limit, tool.run(context, grant.arguments));
    let end = if let Some(task) = watched {
        let (watchers, deltas) = Deltas::of(&shared.queue, task);
        deltas.during(run(Context { watchers, ..context })).await
    } else {
        run(context).await
    };
    end.unwrap_or_else(|_| Err(timed_out(&grant.tool, limit)))
}

fn timed_out(tool: &str, limit: Duration) -> Failure {
    let who = model_name(tool).map_or("the tool".to_owned(), |model| format!("model {model:?}"));
    Failure::new(ErrorClass::Timeout, format!("{who} was not done after {} ms", limit.as_millis()))
}

/// What a tool returns, within the limits of what can be stored.
fn checked(answer: Answer) -> Answer {
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

    fn output(text: String) -> Answer {
        checked(Ok(RawValue::from_string(text).unwrap()))
    }

    #[test]
    fn outputs_are_kept_up_to_the_limits() {
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
