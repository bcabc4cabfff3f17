//! Calls, events, and how their changes are written.

use chrono::TimeDelta;
use redial_engine::{
    Time,
    call::{CallEvent, JobState, Waiting, plan},
};
use redial_proto::{CallId, CallState, ClaimId, Failure, JobRef, RetryOverride, RetryPolicy, ToolEffect, WorkerId};
use redial_records::{Backlog, CallFacts, CallRecord, Change, Claim, Effect, EndedAttempt};
use uuid::Uuid;

pub(crate) fn now() -> Time {
    Time::default() + TimeDelta::days(20_000)
}

pub(crate) const POLICY: RetryPolicy =
    RetryPolicy { initial_ms: 1000, factor: 2.0, cap_ms: 8000, max_attempts: 3, deadline_ms: 60_000 };

pub(crate) fn worker() -> WorkerId {
    "worker-1".parse().unwrap()
}

pub(crate) fn call(state: CallState, attempt: u32) -> CallRecord {
    let running = state == CallState::Running;
    CallRecord {
        id: CallId(Uuid::nil()),
        state,
        attempt,
        tool: "look".to_owned(),
        pool: "default".to_owned(),
        effect: ToolEffect::Idempotent,
        retry: RetryOverride::default(),
        timeout_ms: 1_000,
        traceparent: None,
        deadline_at: now() + TimeDelta::seconds(60),
        worker: running.then(worker),
        claim: running.then(|| ClaimId(Uuid::nil())),
        lease_until: running.then(|| now() + TimeDelta::seconds(15)),
        cancel_requested: false,
        publish_no: attempt + 1,
        published_at: Some(now() - TimeDelta::seconds(10)),
        consumer: Some("default".to_owned()),
        backlog: None,
        started_at: (attempt > 0).then(|| now() - TimeDelta::seconds(1)),
        origin: None,
        read_at: now(),
    }
}

/// Makes a call that waits in the backlog, with attempts behind it.
pub(crate) fn waiting(backlog: Backlog, attempt: u32) -> CallRecord {
    CallRecord { backlog: Some(backlog), published_at: None, consumer: None, ..call(CallState::Ready, attempt) }
}

const fn due(grace_until: Time, job: JobState, waiting: Waiting) -> CallEvent<'static> {
    CallEvent::Due { grace_until, job, waiting }
}

pub(crate) const DUE: CallEvent<'static> = due_while(Waiting::InBacklog);

pub(crate) const fn due_while(waiting: Waiting) -> CallEvent<'static> {
    due(chrono::DateTime::UNIX_EPOCH, JobState::Lost, waiting)
}

pub(crate) const fn due_with(job: JobState) -> CallEvent<'static> {
    due(chrono::DateTime::UNIX_EPOCH, job, Waiting::InBacklog)
}

pub(crate) fn after_outage(grace_s: i64) -> CallEvent<'static> {
    due(now() + TimeDelta::seconds(grace_s), JobState::Lost, Waiting::InBacklog)
}

pub(crate) const fn failed(failure: &Failure) -> CallEvent<'_> {
    CallEvent::Failed { duration_ms: 7, failure }
}

pub(crate) const fn succeeded() -> CallEvent<'static> {
    CallEvent::Succeeded { duration_ms: 7, output: "{}" }
}

pub(crate) fn running() -> CallRecord {
    call(CallState::Running, 1)
}

pub(crate) fn change(call: &CallRecord, event: &CallEvent<'_>) -> Option<Change> {
    plan(call, &POLICY, event, now(), 0.5).map(|transition| transition.change)
}

/// Writes an end as "state/class", a wait with its length, or "unchanged".
pub(crate) fn next(call: &CallRecord, event: &CallEvent<'_>) -> String {
    let wait = |time: Time| (time - now()).num_milliseconds();
    match change(call, event) {
        None => "unchanged".to_owned(),
        Some(Change::End { state, failure: Some(failure), .. }) => format!("{state}/{}", failure.class),
        Some(Change::End { state, failure: None, .. }) => state.to_string(),
        Some(Change::Retry { due_at, .. }) => format!("retry in {} ms", wait(due_at)),
        Some(Change::Postpone { wake_at }) => format!("look again in {} ms", wait(wake_at)),
        Some(Change::Wait { attempt, backlog, check_at }) => {
            format!("{backlog:?} waits after {attempt} attempts, look again in {} ms", wait(check_at))
        }
        Some(Change::Extend { deadline_at }) => format!("{} ms longer", wait(deadline_at)),
        Some(Change::Answer { by, attempt }) => {
            let state = if attempt.result.is_ok() { "succeeded" } else { "failed" };
            format!("{state} by {by}")
        }
        Some(Change::RequestCancel) => "stop the worker".to_owned(),
    }
}

/// Returns the failure of the attempt that ends.
pub(crate) fn failure_of(call: &CallRecord, event: &CallEvent<'_>) -> Failure {
    let changed = change(call, event);
    let Some(Change::Retry { attempt, .. } | Change::End { attempt: Some(attempt), .. }) = changed else {
        panic!("the attempt ended: {changed:?}")
    };
    let EndedAttempt { duration_ms: None, result: Err(failure) } = attempt else { panic!("no worker reported it") };
    failure
}

pub(crate) fn facts(call: &CallRecord) -> CallFacts {
    CallFacts {
        claim: call.claim,
        call: call.id,
        attempt: call.attempt,
        tool: call.tool.clone(),
        tenant: "acme".to_owned(),
        traceparent: None,
        notify: false,
        worker: call.worker.clone(),
        submitted_at: now(),
        at: now(),
        task: None,
    }
}

pub(crate) fn shown(effects: &[Effect]) -> String {
    effects.iter().map(|effect| format!("{effect:?}")).collect::<Vec<_>>().join(", ")
}

pub(crate) fn claim(attempt: u32) -> Claim {
    let claim = ClaimId(Uuid::from_u128(1));
    let job = JobRef { call: CallId(Uuid::nil()), attempt };
    Claim { job, claim, worker: worker(), tool: "look".to_owned(), not_after: now() }
}
