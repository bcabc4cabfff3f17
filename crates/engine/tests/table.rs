//! Every rule of the call's state machine, one line each.

use chrono::TimeDelta;
use redial_engine::{Call, Event, Next, Time, step};
use redial_proto::{CallState, Effect, ErrorClass, Failure, RetryPolicy};

fn now() -> Time {
    Time::default() + TimeDelta::days(20_000)
}

fn call(state: CallState, attempt: u32) -> Call {
    Call {
        state,
        attempt,
        effect: Effect::Idempotent,
        retry: RetryPolicy { initial_ms: 1000, factor: 2.0, cap_ms: 8000, max_attempts: 3, deadline_ms: 60_000 },
        deadline_at: now() + TimeDelta::seconds(60),
        lease_until: (state == CallState::Running).then(|| now() + TimeDelta::seconds(15)),
        cancel_requested: false,
    }
}

fn woken(retry_allowed: bool) -> Event<'static> {
    Event::Woken { retry_allowed, grace_until: Time::default() }
}

fn running() -> Call {
    call(CallState::Running, 1)
}

/// `Ended` as "state/class", anything else by its debug name.
fn next(call: &Call, event: &Event<'_>) -> String {
    match step(call, event, now(), 0.5).next {
        Next::Ended { state, why: Some(why) } => format!("{state}/{}", why.class),
        Next::Ended { state, why: None } => state.to_string(),
        Next::RetryWait { until } => format!("retry in {} ms", (until - now()).num_milliseconds()),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_claim_needs_the_next_number_and_time_left() {
    let ready = call(CallState::Ready, 1);
    assert_eq!(next(&ready, &Event::Claim { attempt: 2 }), "Running");
    assert_eq!(next(&ready, &Event::Claim { attempt: 1 }), "Unchanged");
    assert_eq!(next(&ready, &Event::Claim { attempt: 3 }), "Unchanged");
    assert_eq!(next(&running(), &Event::Claim { attempt: 2 }), "Unchanged");
    assert_eq!(next(&Call { deadline_at: now(), ..ready }, &Event::Claim { attempt: 2 }), "Unchanged");
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
        for effect in Effect::ALL {
            let wanted = if effect == Effect::Unsafe { unsafe_ } else { mild };
            assert_eq!(next(&Call { effect, ..running() }, &Event::Failed(&failure)), *wanted, "{class} {effect}");
        }
    }
}

#[test]
fn an_unsafe_tool_is_retried_only_if_nothing_can_have_happened() {
    let call = Call { effect: Effect::Unsafe, ..running() };
    let failure = Failure::new(ErrorClass::Unavailable, "connection refused").without_effect();
    assert_eq!(next(&call, &Event::Failed(&failure)), "retry in 500 ms");
}

#[test]
fn retries_end_with_the_attempts_and_with_the_deadline() {
    let failure = Failure::new(ErrorClass::Unavailable, "503");
    assert_eq!(next(&call(CallState::Running, 2), &Event::Failed(&failure)), "retry in 1000 ms");
    assert_eq!(next(&call(CallState::Running, 3), &Event::Failed(&failure)), "failed/unavailable");
    let late = failure.retry_after_ms(60_000);
    assert_eq!(next(&running(), &Event::Failed(&late)), "failed/unavailable");
    assert_eq!(next(&running(), &Event::Failed(&late.retry_after_ms(59_999))), "retry in 59999 ms");
}

#[test]
fn a_lease_is_lost_only_when_it_is_over() {
    let woken = woken(true);
    assert!(matches!(step(&running(), &woken, now(), 0.5).next, Next::StillRunning { .. }));
    let expired = Call { lease_until: Some(now()), ..running() };
    let until = now() + TimeDelta::seconds(5);
    let grace = Event::Woken { retry_allowed: true, grace_until: until };
    assert_eq!(step(&expired, &grace, now(), 0.5).next, Next::StillRunning { until }, "an outage has just ended");
    let step = step(&expired, &woken, now(), 0.5);
    assert!(matches!(step.next, Next::RetryWait { .. }));
    assert_eq!(step.ended_attempt.unwrap().unwrap().class, ErrorClass::Lost);
}

#[test]
fn a_woken_call_retries_waits_or_fails_at_its_deadline() {
    let (yes, no) = (woken(true), woken(false));
    let waiting = call(CallState::RetryWait, 1);
    assert_eq!(next(&waiting, &yes), "Ready");
    assert_eq!(next(&waiting, &no), "retry in 1500 ms");
    assert_eq!(next(&call(CallState::Ready, 0), &yes), "Unclaimed");
    for state in [CallState::Ready, CallState::RetryWait] {
        let late = Call { deadline_at: now(), ..call(state, 1) };
        assert_eq!(next(&late, &yes), "failed/budget_exhausted");
    }
}

#[test]
fn a_cancel_stops_at_once_what_does_not_run() {
    assert_eq!(next(&call(CallState::Ready, 0), &Event::Cancel), "cancelled/cancelled");
    assert_eq!(next(&call(CallState::RetryWait, 1), &Event::Cancel), "cancelled/cancelled");
    assert_eq!(next(&running(), &Event::Cancel), "StopWorker");
}

#[test]
fn a_cancelled_call_may_still_succeed_but_is_never_tried_again() {
    let asked = Call { cancel_requested: true, ..running() };
    assert_eq!(next(&asked, &Event::Succeeded), "succeeded");
    for class in [ErrorClass::Unavailable, ErrorClass::Lost, ErrorClass::Timeout, ErrorClass::Cancelled] {
        assert_eq!(next(&asked, &Event::Failed(&Failure::new(class, "m"))), "cancelled/cancelled", "{class}");
    }
    assert_eq!(next(&asked, &Event::Released), "cancelled/cancelled");
}

#[test]
fn a_release_burns_nothing() {
    let step = step(&running(), &Event::Released, now(), 0.5);
    assert_eq!((step.next, step.ended_attempt), (Next::Ready, None));
}

#[test]
fn nothing_moves_an_ended_call() {
    let failure = Failure::new(ErrorClass::Unavailable, "m");
    for state in CallState::ALL.into_iter().filter(|state| state.is_terminal()) {
        for event in [
            Event::Claim { attempt: 2 },
            Event::Succeeded,
            Event::Failed(&failure),
            Event::Released,
            woken(true),
            Event::Cancel,
        ] {
            assert_eq!(next(&call(state, 1), &event), "Unchanged", "{state} {event:?}");
        }
    }
}
