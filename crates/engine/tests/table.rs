//! Every rule of the call's state machine, one line each.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

#[path = "table/effects.rs"]
mod effects;
#[path = "table/fixture.rs"]
mod fixture;
#[path = "table/functions.rs"]
mod functions;
#[path = "table/waiting.rs"]
mod waiting;

use chrono::TimeDelta;
use redial_engine::call::{CallEvent, TIMEOUT_MARGIN_MS, effects, grants, plan, renews};
use redial_proto::{CallState, ErrorClass, Failure, ToolEffect};
use redial_records::{CallRecord, Change, Claim, Effect};

use fixture::{
    DUE, POLICY, after_outage, call, change, claim, facts, failed, failure_of, next, now, running, succeeded, worker,
};

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
        (ErrorClass::Unanswered, "failed/unanswered", "failed/unanswered"),
        (ErrorClass::Lost, "retry in 500 ms", "unknown/lost"),
        (ErrorClass::Auth, "failed/auth", "failed/auth"),
        (ErrorClass::Configuration, "failed/configuration", "failed/configuration"),
        (ErrorClass::OutputInvalid, "failed/output_invalid", "failed/output_invalid"),
        (ErrorClass::OutputTooLarge, "failed/output_too_large", "failed/output_too_large"),
        (ErrorClass::Rejected, "failed/rejected", "failed/rejected"),
        (ErrorClass::BudgetExhausted, "failed/budget_exhausted", "failed/budget_exhausted"),
        (ErrorClass::Cancelled, "failed/cancelled", "failed/cancelled"),
        (ErrorClass::ToolFailed, "failed/tool_failed", "unknown/tool_failed"),
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
fn a_tool_that_just_fails_is_not_retried_and_its_words_stay_in_the_record() {
    let failure = Failure::new(ErrorClass::ToolFailed, "exit code 1").with_diagnostics("db-7 is down");
    for effect in ToolEffect::ALL {
        let call = CallRecord { effect, ..running() };
        let Some(Change::End { state, failure: Some(told), attempt: Some(attempt) }) = change(&call, &failed(&failure))
        else {
            panic!("{effect}: the call goes on")
        };
        let is_unsafe = effect == ToolEffect::Unsafe;
        assert_eq!(state, if is_unsafe { CallState::Unknown } else { CallState::Failed });
        assert!(told.diagnostics.is_none() && !told.message.contains("db-7"), "{told:?}");
        assert_eq!(attempt.result.unwrap_err().for_the_record(), "exit code 1: db-7 is down");
    }
    let harmless = CallRecord { effect: ToolEffect::Unsafe, ..running() };
    assert_eq!(next(&harmless, &failed(&failure.without_effect())), "failed/tool_failed");
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
    assert_eq!(next(&running(), &DUE), "look again in 15000 ms");
    let expired = CallRecord { lease_until: Some(now()), ..running() };
    assert_eq!(next(&expired, &after_outage(5)), "look again in 5000 ms", "an outage has just ended");
    assert_eq!(failure_of(&expired, &DUE).class, ErrorClass::Lost);
}

#[test]
fn an_attempt_ends_a_margin_after_its_timeout_however_its_lease_is_renewed() {
    let limit = TimeDelta::milliseconds(1_000 + i64::try_from(TIMEOUT_MARGIN_MS).unwrap());
    let started = |ago| CallRecord { started_at: Some(now() - ago), ..running() };
    let overdue = started(limit);
    assert_eq!(failure_of(&overdue, &DUE).class, ErrorClass::Timeout);
    assert!(failure_of(&overdue, &DUE).effect_possible);
    assert_eq!(next(&started(limit - TimeDelta::milliseconds(1)), &DUE), "look again in 1 ms");
    assert_eq!(next(&started(TimeDelta::seconds(1)), &DUE), "look again in 15000 ms", "the lease ends first");
    assert_eq!(next(&overdue, &after_outage(5)), "look again in 5000 ms", "its worker could not report");
    let rows = [
        (CallRecord { effect: ToolEffect::Unsafe, ..overdue.clone() }, "unknown/timeout"),
        (CallRecord { cancel_requested: true, ..overdue.clone() }, "cancelled/cancelled"),
        (CallRecord { attempt: 3, ..overdue.clone() }, "failed/timeout"),
        (CallRecord { timeout_ms: u64::MAX, ..overdue }, "look again in 15000 ms"),
    ];
    for (call, wanted) in rows {
        assert_eq!(next(&call, &DUE), wanted);
    }
    // As after a time without dispatchers in which its worker died.
    let abandoned = CallRecord { lease_until: Some(now()), ..started(limit) };
    assert_eq!(failure_of(&abandoned, &DUE).class, ErrorClass::Lost, "nobody knows whether it ended in time");
}

#[test]
fn the_worker_of_an_overdue_attempt_is_stopped() {
    let overdue = CallRecord { started_at: Some(now() - TimeDelta::hours(1)), ..running() };
    let stops = |call: &CallRecord, event: &CallEvent<'_>| {
        let planned = effects(&plan(call, &POLICY, event, now(), 0.5).unwrap(), &facts(call));
        planned.iter().any(|effect| matches!(effect, Effect::StopWorker { .. }))
    };
    let unsafe_ = CallRecord { effect: ToolEffect::Unsafe, ..overdue.clone() };
    assert!(stops(&overdue, &DUE) && stops(&unsafe_, &DUE), "whether it is tried again or ends");
    let expired = CallRecord { lease_until: Some(now()), ..running() };
    assert!(!stops(&expired, &DUE), "a worker stops by itself what it has no lease for");
    let reported = Failure::new(ErrorClass::Timeout, "m");
    assert!(!stops(&running(), &failed(&reported)), "it has stopped");
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
    assert_eq!(next(&running(), &CallEvent::Released), "Job waits after 0 attempts, look again in 60000 ms");
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
        for event in [succeeded(), failed(&failure), CallEvent::Released, DUE, CallEvent::Cancel] {
            assert_eq!(next(&call(state, 1), &event), "unchanged", "{state} {event:?}");
        }
        assert!(!grants(&call(state, 1), &claim(2), now()), "{state}");
    }
}
