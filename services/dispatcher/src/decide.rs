//! Between the tables and the engine: a row becomes the engine's call, its decision becomes a change of the row, and
//! what has to be done after the commit is done here, in one place.

use std::{collections::HashMap, time::Duration};

use redial_engine::{Call, Event, Next, publish, tools::retry_policy};
use redial_proto::{ApiError, CallId, CallState, CallView, Code, ErrorClass, Job, JobRef, limits};
use redial_records::{Effect, OutgoingJob};
use redial_store::{Applied, CallRow, Change, EndedAttempt, Expected, Reason, Time};
use redial_telemetry::metrics;
use serde_json::value::RawValue;

use crate::{
    context::Context,
    error::{call_not_found, store_failed},
    registry::Registry,
};

/// What a worker reported of an attempt, besides its failure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reported {
    /// How long the tool ran, in ms.
    pub(crate) duration_ms: Option<u64>,
    /// Its result: valid JSON.
    pub(crate) output: Option<String>,
}

/// What an event does to a call; `None` if nothing. Unclaimed calls go through [`unclaimed`] as well.
pub(crate) fn change(
    registry: &Registry,
    row: &CallRow,
    event: &Event<'_>,
    reported: Option<Reported>,
) -> Option<Change> {
    let call = engine_call(registry, row);
    let step = redial_engine::step(&call, event, row.read_at, rand::random());
    let mut change = kept(row);
    match step.next {
        Next::Unchanged | Next::Unclaimed | Next::Running => return None,
        Next::StillRunning { until } => change.wake_at = Some(until),
        Next::StopWorker => change.cancel = true,
        Next::Ready => {
            change.state = CallState::Ready;
            change.publish = true;
            change.wake_at = Some(check_at(row, row.read_at + Duration::from_millis(publish::FIRST_CHECK_MS)));
            if matches!(event, Event::Released) {
                change.attempt = row.attempt.saturating_sub(1);
            }
        }
        Next::RetryWait { until } => {
            change.state = CallState::RetryWait;
            change.wake_at = Some(until);
        }
        Next::Ended { state, why } => {
            change.state = state;
            change.why = why.map(|why| (why.class, why.message));
        }
    }
    change.ended = step.ended_attempt.map(|failure| {
        let reported = reported.unwrap_or_default();
        EndedAttempt {
            duration_ms: reported.duration_ms,
            output: failure.is_none().then_some(reported.output).flatten(),
            failure: failure.map(|failure| {
                let details = (!failure.details.is_empty()).then(|| serde_json::to_string(&failure.details).ok());
                let message = limits::shorten(&failure.message, limits::MAX_ERROR_MESSAGE);
                Reason { class: failure.class, message, details: details.flatten() }
            }),
            retry_at: change.wake_at.filter(|_| change.state == CallState::RetryWait),
        }
    });
    Some(change)
}

/// What becomes of a call whose job nobody claimed. `queued`: its pool's queue still holds jobs.
pub(crate) fn unclaimed(row: &CallRow, queued: bool) -> Change {
    let published = row.publish_no.saturating_sub(row.attempt);
    let (publish, at) = match publish::unclaimed(published, row.published_at, queued, row.read_at) {
        publish::Unclaimed::Publish { check_at } => (true, check_at),
        publish::Unclaimed::Wait { check_at } => (false, check_at),
    };
    Change { publish, wake_at: Some(check_at(row, at)), ..kept(row) }
}

/// Only looks at an unclaimed call again, after a pause.
pub(crate) fn look_again(row: &CallRow, pause: Duration) -> Change {
    Change { wake_at: Some(check_at(row, row.read_at + pause)), ..kept(row) }
}

/// When to look at a call that is ready: not later than its deadline.
fn check_at(row: &CallRow, at: Time) -> Time {
    at.min(row.deadline_at)
}

/// The success of an attempt, without reading the call first: the engine ends every running call the same way.
pub(crate) fn success(job: JobRef, worker: &redial_proto::WorkerId, reported: Reported) -> Change {
    let expected = Expected {
        state: CallState::Running,
        attempt: job.attempt,
        worker: Some(worker.clone()),
        claim: None,
        cancel_requested: None,
    };
    Change {
        call: job.call,
        expected,
        state: CallState::Succeeded,
        attempt: job.attempt,
        wake_at: None,
        publish: false,
        cancel: false,
        why: None,
        ended: Some(EndedAttempt {
            duration_ms: reported.duration_ms,
            output: reported.output,
            failure: None,
            retry_at: None,
        }),
    }
}

fn engine_call(registry: &Registry, row: &CallRow) -> Call {
    Call {
        state: row.state,
        attempt: row.attempt,
        effect: row.effect,
        retry: retry_policy(&registry.tools(), &row.tool, &row.retry),
        deadline_at: row.deadline_at,
        lease_until: row.lease_until,
        cancel_requested: row.cancel_requested,
    }
}

/// The change that changes nothing, guarded by all that a decision may depend on.
fn kept(row: &CallRow) -> Change {
    Change {
        call: row.id,
        expected: Expected {
            state: row.state,
            attempt: row.attempt,
            worker: row.worker.clone().filter(|_| row.state == CallState::Running),
            claim: row.claim.filter(|_| row.state == CallState::Running),
            cancel_requested: Some(row.cancel_requested),
        },
        state: row.state,
        attempt: row.attempt,
        wake_at: None,
        publish: false,
        cancel: false,
        why: None,
        ended: None,
    }
}

/// The effects of committed changes.
pub(crate) fn effects(context: &Context, changes: &[Change], applied: Vec<Applied>) -> Vec<Effect> {
    let changes: HashMap<CallId, &Change> = changes.iter().map(|change| (change.call, change)).collect();
    let mut effects = Vec::new();
    for call in applied {
        let Some(change) = changes.get(&call.call) else { continue };
        count(context, change, &call);
        effects.extend(call.task.map(Effect::WakeTask));
        match change.state {
            CallState::Ready if change.publish => effects.push(Effect::PublishJob(next_job(call))),
            CallState::RetryWait => effects.push(Effect::WakeSweeper),
            CallState::Running if change.cancel => effects.extend(stop_worker(&call)),
            state if state.is_terminal() && call.notify => {
                effects.push(Effect::NotifySubmitter(Box::new(ended_view(change, &call))));
            }
            _ => {}
        }
    }
    effects
}

/// Cancels a call; its state then, and the effects.
pub(crate) async fn cancel(context: &Context, call: CallId) -> Result<(CallState, Vec<Effect>), ApiError> {
    // The call may move between the look and the write, a few times at most: it has few states to move through.
    for _ in 0..10 {
        let rows = context.store.load(&[call]).await.map_err(|error| store_failed(&error))?;
        let row = rows.first().ok_or_else(|| call_not_found(call))?;
        let Some(change) = change(&context.registry, row, &Event::Cancel, None) else {
            return Ok((row.state, Vec::new()));
        };
        let changes = [change];
        let applied = context.store.apply(&changes).await.map_err(|error| store_failed(&error))?;
        if !applied.is_empty() {
            return Ok((changes[0].state, effects(context, &changes, applied)));
        }
    }
    Err(ApiError::new(Code::Unavailable, "the call changes too fast to be cancelled now; try again"))
}

fn count(context: &Context, change: &Change, call: &Applied) {
    let class = |class: &ErrorClass| class.as_str();
    if let Some(ended) = &change.ended {
        let failed = ended.failure.as_ref().map(|failure| class(&failure.class));
        let duration = Duration::from_millis(ended.duration_ms.unwrap_or(0));
        metrics().attempt_finished(&call.tool, failed, duration);
        match (failed, change.state) {
            (None, _) => context.count_success(&call.tool),
            (Some(failed), CallState::RetryWait) => metrics().retry_scheduled(&call.tool, failed),
            _ => {}
        }
        if ended.failure.as_ref().is_some_and(|failure| failure.class == ErrorClass::Lost)
            && ended.duration_ms.is_none()
        {
            metrics().leases_expired(1);
        }
    }
    if change.state.is_terminal() {
        metrics().call_finished(&call.tool, change.state.as_str(), change.why.as_ref().map(|why| class(&why.0)));
    }
}

fn next_job(call: Applied) -> OutgoingJob {
    OutgoingJob {
        job: Job { call: call.call, attempt: call.attempt + 1, tool: call.tool, bytes: call.bytes },
        pool: call.pool,
        publish_no: call.publish_no,
        traceparent: call.traceparent,
    }
}

fn stop_worker(call: &Applied) -> Option<Effect> {
    let attempt = JobRef { call: call.call, attempt: call.attempt };
    Some(Effect::StopWorker { worker: call.worker.clone()?, attempt })
}

fn ended_view(change: &Change, call: &Applied) -> CallView {
    let output = change.ended.as_ref().and_then(|ended| ended.output.clone());
    CallView {
        call: call.call,
        tool: call.tool.clone(),
        state: change.state,
        attempts: call.attempt,
        submitted_at: call.submitted_at,
        next_attempt_at: None,
        finished_at: Some(call.at),
        output: output.and_then(|output| RawValue::from_string(output).ok()),
        class: change.why.as_ref().map(|why| why.0),
        message: change.why.as_ref().map(|why| why.1.clone()),
    }
}
