//! Every rule of the call's state machine, one line each.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

use chrono::TimeDelta;
use redial_engine::{
    Time,
    call::{CallEvent, Republish, grants, plan, renews},
};
use redial_proto::{
    CallId, CallState, ClaimId, ErrorClass, Failure, JobRef, RetryOverride, RetryPolicy, ToolEffect, WorkerId,
};
use redial_records::{CallRecord, Change, Claim, EndedAttempt};
use uuid::Uuid;

fn now() -> Time {
    Time::default() + TimeDelta::days(20_000)
}

const POLICY: RetryPolicy =
    RetryPolicy { initial_ms: 1000, factor: 2.0, cap_ms: 8000, max_attempts: 3, deadline_ms: 60_000 };

fn worker() -> WorkerId {
    "worker-1".parse().unwrap()
}

fn call(state: CallState, attempt: u32) -> CallRecord {
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
        published_at: now() - TimeDelta::seconds(10),
        origin: None,
        read_at: now(),
    }
}

fn due(retry_allowed: bool) -> CallEvent<'static> {
    CallEvent::Due { retry_allowed, grace_until: Time::default(), republish: Republish::Now }
}

const fn failed(failure: &Failure) -> CallEvent<'_> {
    CallEvent::Failed { duration_ms: 7, failure }
}

const fn succeeded() -> CallEvent<'static> {
    CallEvent::Succeeded { duration_ms: 7, output: "{}" }
}

fn running() -> CallRecord {
    call(CallState::Running, 1)
}

fn change(call: &CallRecord, event: &CallEvent<'_>) -> Option<Change> {
    plan(call, &POLICY, event, now(), 0.5).map(|transition| transition.change)
}

/// An end as "state/class", a wait with its length, "unchanged".
fn next(call: &CallRecord, event: &CallEvent<'_>) -> String {
    let wait = |time: Time| (time - now()).num_milliseconds();
    match change(call, event) {
        None => "unchanged".to_owned(),
        Some(Change::End { state, failure: Some(failure), .. }) => format!("{state}/{}", failure.class),
        Some(Change::End { state, failure: None, .. }) => state.to_string(),
        Some(Change::Retry { due_at, .. }) => format!("retry in {} ms", wait(due_at)),
        Some(Change::Postpone { wake_at }) => format!("look again in {} ms", wait(wake_at)),
        Some(Change::Publish { attempt, check_at }) => {
            format!("publish after {attempt} attempts, look again in {} ms", wait(check_at))
        }
        Some(Change::RequestCancel) => "stop the worker".to_owned(),
    }
}

fn claim(attempt: u32) -> Claim {
    let claim = ClaimId(Uuid::from_u128(1));
    Claim { job: JobRef { call: CallId(Uuid::nil()), attempt }, claim, worker: worker() }
}

#[test]
fn a_claim_needs_the_next_number_and_time_left() {
    let ready = call(CallState::Ready, 1);
    assert!(grants(&ready, &claim(2), now()));
    assert!(!grants(&ready, &claim(1), now()));
    assert!(!grants(&ready, &claim(3), now()));
    assert!(!grants(&running(), &claim(2), now()));
    assert!(!grants(&CallRecord { deadline_at: now(), ..ready }, &claim(2), now()));
}

#[test]
fn a_claim_is_granted_again_unless_it_was_given_back() {
    let claim = claim(1);
    let granted = CallRecord { claim: Some(claim.claim), ..running() };
    assert!(grants(&granted, &claim, now()));
    let another = Claim { worker: "worker-2".parse().unwrap(), ..claim.clone() };
    assert!(!grants(&granted, &another, now()));
    let given_back = CallRecord { claim: Some(claim.claim), ..call(CallState::Ready, 0) };
    assert!(!grants(&given_back, &claim, now()));
}

#[test]
fn a_heartbeat_renews_only_the_current_attempt_of_its_worker() {
    assert!(renews(&running(), &worker(), 1));
    assert!(!renews(&running(), &worker(), 2));
    assert!(!renews(&running(), &"worker-2".parse().unwrap(), 1));
    assert!(!renews(&CallRecord { worker: Some(worker()), ..call(CallState::Ready, 1) }, &worker(), 1));
}

#[test]
fn every_class_by_every_effect() {
    let rows: &[(ErrorClass, &str, &str)] = &[
        // class, idempotent or keyed or read, unsafe
        (ErrorClass::MalformedArguments, "failed/malformed_arguments", "failed/malformed_arguments"),
        (ErrorClass::UnknownTool, "failed/unknown_tool", "failed/unknown_tool"),
        (ErrorClass::InvalidArguments, "failed/invalid_arguments", "failed/invalid_arguments"),
        (ErrorClass::RepeatedCall, "failed/repeated_call", "failed/repeated_call"),
        (ErrorClass::BusinessRule, "failed/business_rule", "failed/business_rule"),
        (ErrorClass::RateLimited, "retry in 500 ms", "unknown/rate_limited"),
        (ErrorClass::Unavailable, "retry in 500 ms", "unknown/unavailable"),
        (ErrorClass::Timeout, "retry in 500 ms", "unknown/timeout"),
        (ErrorClass::Lost, "retry in 500 ms", "unknown/lost"),
        (ErrorClass::Auth, "failed/auth", "failed/auth"),
        (ErrorClass::Configuration, "failed/configuration", "failed/configuration"),
        (ErrorClass::OutputInvalid, "failed/output_invalid", "failed/output_invalid"),
        (ErrorClass::OutputTooLarge, "failed/output_too_large", "failed/output_too_large"),
        (ErrorClass::Rejected, "failed/rejected", "failed/rejected"),
        (ErrorClass::BudgetExhausted, "failed/budget_exhausted", "failed/budget_exhausted"),
        (ErrorClass::Cancelled, "failed/cancelled", "failed/cancelled"),
        (ErrorClass::Internal, "failed/internal", "unknown/internal"),
    ];
    assert_eq!(rows.len(), ErrorClass::ALL.len());
    for (class, mild, unsafe_) in rows {
        let failure = Failure::new(*class, "m");
        for effect in ToolEffect::ALL {
            let wanted = if effect == ToolEffect::Unsafe { unsafe_ } else { mild };
            assert_eq!(next(&CallRecord { effect, ..running() }, &failed(&failure)), *wanted, "{class} {effect}");
        }
    }
}

#[test]
fn an_unsafe_tool_is_retried_only_if_nothing_can_have_happened() {
    let call = CallRecord { effect: ToolEffect::Unsafe, ..running() };
    let failure = Failure::new(ErrorClass::Unavailable, "connection refused").without_effect();
    assert_eq!(next(&call, &failed(&failure)), "retry in 500 ms");
}

#[test]
fn retries_end_with_the_attempts_and_with_the_deadline() {
    let failure = Failure::new(ErrorClass::Unavailable, "503");
    assert_eq!(next(&call(CallState::Running, 2), &failed(&failure)), "retry in 1000 ms");
    assert_eq!(next(&call(CallState::Running, 3), &failed(&failure)), "failed/unavailable");
    let late = failure.retry_after_ms(60_000);
    assert_eq!(next(&running(), &failed(&late)), "failed/unavailable");
    assert_eq!(next(&running(), &failed(&late.retry_after_ms(59_999))), "retry in 59999 ms");
}

#[test]
fn a_lease_is_lost_only_when_it_has_ended() {
    assert_eq!(next(&running(), &due(true)), "look again in 15000 ms");
    let expired = CallRecord { lease_until: Some(now()), ..running() };
    let grace_until = now() + TimeDelta::seconds(5);
    let grace = CallEvent::Due { retry_allowed: true, grace_until, republish: Republish::Now };
    assert_eq!(next(&expired, &grace), "look again in 5000 ms", "an outage has just ended");
    let Some(Change::Retry { attempt: EndedAttempt { duration_ms: None, result: Err(failure) }, .. }) =
        change(&expired, &due(true))
    else {
        panic!("the attempt ended")
    };
    assert_eq!(failure.class, ErrorClass::Lost);
}

#[test]
fn a_due_call_retries_waits_or_fails_at_its_deadline() {
    let (yes, no) = (due(true), due(false));
    let waiting = call(CallState::RetryWait, 1);
    assert_eq!(next(&waiting, &yes), "publish after 1 attempts, look again in 10000 ms");
    assert_eq!(next(&waiting, &no), "look again in 1500 ms");
    for state in [CallState::Ready, CallState::RetryWait] {
        let late = CallRecord { deadline_at: now(), ..call(state, 1) };
        assert_eq!(next(&late, &yes), "failed/budget_exhausted");
    }
}

#[test]
fn an_unclaimed_job_is_published_again_unless_it_is_likely_queued() {
    let ready = call(CallState::Ready, 0);
    let republish = |republish| CallEvent::Due { retry_allowed: true, grace_until: Time::default(), republish };
    assert_eq!(next(&ready, &republish(Republish::Now)), "publish after 0 attempts, look again in 20000 ms");
    assert_eq!(next(&ready, &republish(Republish::IfOverdue)), "look again in 10000 ms");
    assert_eq!(next(&ready, &republish(Republish::Later)), "look again in 1000 ms");
    let urgent = CallRecord { deadline_at: now() + TimeDelta::seconds(3), ..ready };
    assert_eq!(next(&urgent, &republish(Republish::Now)), "publish after 0 attempts, look again in 3000 ms");
}

#[test]
fn a_cancel_ends_at_once_what_does_not_run() {
    assert_eq!(next(&call(CallState::Ready, 0), &CallEvent::Cancel), "cancelled/cancelled");
    assert_eq!(next(&call(CallState::RetryWait, 1), &CallEvent::Cancel), "cancelled/cancelled");
    assert_eq!(next(&running(), &CallEvent::Cancel), "stop the worker");
}

#[test]
fn a_cancelled_call_may_still_succeed_but_is_never_tried_again() {
    let asked = CallRecord { cancel_requested: true, ..running() };
    assert_eq!(next(&asked, &succeeded()), "succeeded");
    for class in [ErrorClass::Unavailable, ErrorClass::Lost, ErrorClass::Timeout, ErrorClass::Cancelled] {
        assert_eq!(next(&asked, &failed(&Failure::new(class, "m"))), "cancelled/cancelled", "{class}");
    }
    assert_eq!(next(&asked, &CallEvent::Released), "cancelled/cancelled");
}

#[test]
fn a_release_does_not_count_as_an_attempt() {
    assert_eq!(next(&running(), &CallEvent::Released), "publish after 0 attempts, look again in 10000 ms");
}

#[test]
fn the_failure_of_a_call_says_whether_its_effect_is_unknown() {
    let failure = Failure::new(ErrorClass::Internal, "m");
    for (effect, unknown) in [(ToolEffect::Unsafe, true), (ToolEffect::Idempotent, false)] {
        let Some(Change::End { failure: Some(failure), .. }) =
            change(&CallRecord { effect, ..running() }, &failed(&failure))
        else {
            panic!("it ended")
        };
        assert_eq!(failure.effect_possible, unknown);
    }
}

#[test]
fn nothing_moves_an_ended_call() {
    let failure = Failure::new(ErrorClass::Unavailable, "m");
    for state in CallState::ALL.into_iter().filter(|state| state.is_terminal()) {
        for event in [succeeded(), failed(&failure), CallEvent::Released, due(true), CallEvent::Cancel] {
            assert_eq!(next(&call(state, 1), &event), "unchanged", "{state} {event:?}");
        }
        assert!(!grants(&call(state, 1), &claim(2), now()), "{state}");
    }
}
