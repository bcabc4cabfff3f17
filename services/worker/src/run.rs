//! Run: one granted attempt, in its own task, until its deadline.

use std::{sync::Arc, time::Duration};

use redial_proto::{ErrorClass, Failure, Grant, GrantRef, traceparent, turn::model_name};
use redial_telemetry::{chat, current_traceparent, execute_tool, record_error, set_parent};
use redial_tools::{Context, OutputMemory, ToolResult};
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use crate::{
    attempts::Lease,
    deltas::DeltaPublisher,
    fetch::{self, Unfetched},
    pool::Permit,
    release::release,
    state::WorkerState,
};

/// Starts a granted attempt. Its task reports the result, and returns the permit when the tool has ended. False if the call is active
/// already, or the lease has ended.
pub(crate) fn start(state: &Arc<WorkerState>, grant: Grant, lease: Lease, permit: Permit) -> bool {
    let spawn = || {
        let span = span(&grant);
        if let Some(traceparent) = &grant.traceparent {
            set_parent(&span, traceparent);
        }
        let attempt = attempt(Arc::clone(state), lease, grant, permit);
        state.tool_tasks.spawn(attempt.instrument(span)).abort_handle()
    };
    let started = state.attempts.start(lease, spawn);
    if !started {
        let GrantRef { call, attempt, .. } = lease.grant;
        tracing::warn!(%call, attempt, "Gave back a grant: the call is active already, or the lease has ended");
    }
    started
}

fn span(grant: &Grant) -> Span {
    let call = grant.call.to_string();
    match model_name(&grant.tool) {
        Some(model) => chat(model, grant.conversation.as_deref(), &call, grant.attempt),
        None => execute_tool(&grant.tool, &call, grant.attempt),
    }
}

async fn attempt(state: Arc<WorkerState>, lease: Lease, mut grant: Grant, permit: Permit) {
    let granted = lease.grant;
    if let Some(until) = lease.fetch_until {
        // Boxed, like what watchers get: a worker may have ten thousand of these futures, and few need that.
        match Box::pin(fetch::arguments(&state, granted, until)).await {
            Ok(arguments) if !state.draining.is_cancelled() && state.attempts.begin(granted) => {
                grant.arguments = arguments;
            }
            Ok(_) | Err(Unfetched::GiveBack) => return give_back(&state, granted, permit),
            Err(Unfetched::Failed(failure)) => {
                let memory = OutputMemory::default();
                return end(&state, granted, permit, Ended { took: Duration::ZERO, answer: Err(failure), memory });
            }
        }
    }
    let started = Instant::now();
    let memory = OutputMemory::new(state.outputs.clone(), &grant.tenant);
    let answer = execute(&state, grant, memory.clone()).await;
    end(&state, granted, permit, Ended { took: started.elapsed(), answer, memory });
}

struct Ended {
    took: Duration,
    answer: ToolResult,
    memory: OutputMemory,
}

/// Reports the end of an attempt, unless that was done already.
fn end(state: &WorkerState, granted: GrantRef, permit: Permit, Ended { took, answer, memory }: Ended) {
    let class = answer.as_ref().err().map(|failure| failure.class.as_str());
    // Before the report, so that the next job does not wait for it.
    drop(permit);
    // Keeps a draining worker alive between the end of the attempt and its report.
    let _pending = state.reports.pending_guard();
    if !state.attempts.finish(granted) {
        return;
    }
    if let Some(class) = class {
        record_error(&Span::current(), class);
    }
    state.reports.send(granted, took, answer, memory.take());
}

/// Gives back an attempt whose tool was not started.
fn give_back(state: &Arc<WorkerState>, granted: GrantRef, permit: Permit) {
    drop(permit);
    // Keeps a draining worker alive between the end of the attempt and its release.
    let pending = state.reports.pending_guard();
    if state.attempts.finish(granted) {
        state.attempts.remove(granted);
        let giver = Arc::clone(state);
        state.control_tasks.spawn("give an attempt back", async move {
            let _pending = pending;
            release(&giver, vec![granted]).await;
        });
    }
}

/// Runs the tool, and drops its future at the deadline.
async fn execute(state: &WorkerState, grant: Grant, memory: OutputMemory) -> ToolResult {
    let Some(tool) = state.tools.get(&grant.tool) else {
        let message = format!("worker {} does not have tool {:?}", state.id, grant.tool);
        return Err(Failure::new(ErrorClass::Configuration, message).without_effect());
    };
    let received = grant.traceparent.as_deref().and_then(traceparent::read);
    let traceparent = current_traceparent().or_else(|| received.map(str::to_owned));
    let context = Context { traceparent, memory, ..Context::from(&grant) };
    // Watchers see what models write, not what tools do.
    let watched = grant.task.filter(|_| model_name(&grant.tool).is_some());
    let limit = context.timeout;
    let run = |context| tokio::time::timeout(limit, tool.run(context, grant.arguments));
    let end = if let Some(task) = watched {
        let of = (task, grant.attempt);
        let (watchers, publisher) = DeltaPublisher::new(&state.queue, &grant.tenant, of, tool.secrets().clone());
        Box::pin(publisher.publish_during(run(Context { watchers, ..context }))).await
    } else {
        run(context).await
    };
    end.unwrap_or_else(|_| Err(timed_out(&grant.tool, limit)))
}

fn timed_out(tool: &str, limit: Duration) -> Failure {
    let subject = model_name(tool).map_or("the tool".to_owned(), |model| format!("model {model:?}"));
    Failure::new(ErrorClass::Timeout, format!("{subject} did not finish within {} ms", limit.as_millis()))
}
