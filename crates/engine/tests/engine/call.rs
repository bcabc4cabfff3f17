//! Every rule of the call's state machine, one line each.

mod effects;
mod fixture;
mod functions;
mod sweep;
mod waiting;

use chrono::TimeDelta;
use redial_engine::call::{CallEvent, TIMEOUT_MARGIN_MS, effects, grants, plan, renews, takes_back};
use redial_proto::{CallState, ClaimId, ErrorClass, Failure, GrantRef, ToolEffect};
use redial_records::{CallRecord, Change, Claim, Effect};

use fixture::{
    DUE, POLICY, after_outage, call, change, claim, facts, failed, failure_of, next, now, running, succeeded, worker,
};

#[test]
fn a_claim_needs_the_next_number_and_its_time_and_is_granted_again_unless_it_was_given_back() {
    let (ready, first) = (call(CallState::Ready, 1), claim(1));
    let late = CallRecord { deadline_at: now(), ..ready.clone() };
    let granted = CallRecord { claim: Some(first.claim), ..running() };
    let given_back = CallRecord { claim: Some(first.claim), ..call(CallState::Ready, 0) };
    let of_another = Claim { worker: "worker-2".parse().unwrap(), ..first.clone() };
    let over = |attempt| Claim { not_after: now() - TimeDelta::microseconds(1), ..claim(attempt) };
    for (call, claim, wanted) in [
        (&ready, &claim(2), true),
        (&ready, &first, false),
        (&ready, &claim(3), false),
        (&running(), &claim(2), false),
        (&late, &claim(2), false),
        (&ready, &over(2), false),
        (&granted, &first, true),
        (&granted, &over(1), true),
        (&granted, &of_another, false),
        (&given_back, &first, false),
    ] {
        assert_eq!(grants(call, claim, now()), wanted, "{call:?} {claim:?}");
    }
}

#[test]
fn a_heartbeat_renews_only_the_current_grant_of_its_worker() {
    let granted = running().grant().unwrap();
    assert!(renews(&running(), &worker(), granted));
    assert!(!renews(&running(), &worker(), GrantRef { attempt: 2, ..granted }));
    assert!(!renews(&running(), &worker(), GrantRef { claim: ClaimId::generate(), ..granted }), "it was given back");
    assert!(!renews(&running(), &"worker-2".parse().unwrap(), granted));
    let ready = CallRecord { state: CallState::Ready, ..running() };
    assert!(!renews(&ready, &worker(), granted));
}

#[test]
fn a_grant_that_the_record_lost_is_taken_back_and_one_that_was_released_is_not() {
    let lost = GrantRef { attempt: 2, ..running().grant().unwrap() };
    let (given_back, begun) = (Some(lost.claim), Some(now()));
    let (before, after) = (Some(now() - TimeDelta::microseconds(1)), Some(now() + TimeDelta::microseconds(1)));
    let call = |attempt, claim, started_at| CallRecord { claim, started_at, ..call(CallState::Ready, attempt) };
    for (call, held_at, wanted) in [
        (call(1, None, None), None, true),
        (call(1, None, begun), after, true),
        (call(1, Some(ClaimId::generate()), begun), after, true),
        (call(1, None, begun), None, false),
        (call(1, Some(ClaimId::generate()), begun), before, false),
        (call(1, Some(ClaimId::generate()), begun), begun, false),
        (call(1, given_back, begun), after, false),
        (call(0, None, None), after, false),
        (call(2, None, None), after, false),
        (CallRecord { state: CallState::RetryWait, ..call(1, None, None) }, after, false),
        (CallRecord { attempt: 1, ..running() }, after, false),
    ] {
        assert_eq!(takes_back(&call, lost, held_at), wanted, "{call:?} {held_at:?}");
    }
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
        assert_eq!(told.effect_possible, is_unsafe, "whether its effect is unknown");
        assert_eq!(attempt.result.unwrap_err().for_the_record(), "exit code 1: db-7 is down");
    }
}

#[test]
fn every_other_rule() {
    let failure = |class| Failure::new(class, "m");
    let (unavailable, harmless) = (failure(ErrorClass::Unavailable), failure(ErrorClass::Unavailable).without_effect());
    let tool_failed = failure(ErrorClass::ToolFailed).without_effect();
    let [late, in_time] = [60_000, 59_999].map(|ms| unavailable.clone().retry_after_ms(ms));
    let of_unsafe = CallRecord { effect: ToolEffect::Unsafe, ..running() };
    let expired = CallRecord { lease_until: Some(now()), ..running() };
    let limit = TimeDelta::milliseconds(1_000 + i64::try_from(TIMEOUT_MARGIN_MS).unwrap());
    let started = |ago| CallRecord { started_at: Some(now() - ago), ..running() };
    let overdue = started(limit);
    let unheard = CallRecord { effect: ToolEffect::Unsafe, lease_until: Some(now()), ..running() };
    let silent = CallRecord { started_at: overdue.started_at, ..unheard.clone() };
    let of_a_day = CallRecord { timeout_ms: 86_400_000, ..unheard.clone() };
    let cancelled = CallRecord { cancel_requested: true, ..running() };
    for (rule, call, event, wanted) in [
        ("nothing can have happened", &of_unsafe, failed(&harmless), "retry in 500 ms"),
        ("nothing can have happened", &of_unsafe, failed(&tool_failed), "failed/tool_failed"),
        ("waits grow", &call(CallState::Running, 2), failed(&unavailable), "retry in 1000 ms"),
        ("attempts end", &call(CallState::Running, 3), failed(&unavailable), "failed/unavailable"),
        ("the deadline would pass", &running(), failed(&late), "failed/unavailable"),
        ("the service asks for a pause", &running(), failed(&in_time), "retry in 59999 ms"),
        (
            "a release is no attempt",
            &running(),
            CallEvent::Released,
            "Job waits after 0 attempts, look again in 60000 ms",
        ),
        (
            "a due retry waits",
            &call(CallState::RetryWait, 1),
            DUE,
            "Retry waits after 1 attempts, look again in 60000 ms",
        ),
        ("a lease has not ended", &running(), DUE, "look again in 15000 ms"),
        ("an outage has just ended", &expired, after_outage(5), "look again in 5000 ms"),
        ("a timeout has a margin", &started(limit - TimeDelta::milliseconds(1)), DUE, "look again in 1 ms"),
        ("the lease ends first", &started(TimeDelta::seconds(1)), DUE, "look again in 15000 ms"),
        ("its worker could not report", &overdue, after_outage(5), "look again in 5000 ms"),
        ("nobody else gets an unsafe one", &unheard, DUE, "look again in 30000 ms"),
        ("it may take a day", &of_a_day, DUE, "look again in 3600000 ms"),
        ("its report counts", &unheard, succeeded(), "succeeded"),
        ("it is never heard again", &silent, DUE, "unknown/lost"),
        ("it may be heard again", &silent, after_outage(5), "look again in 5000 ms"),
        ("overdue", &CallRecord { effect: ToolEffect::Unsafe, ..overdue.clone() }, DUE, "unknown/timeout"),
        ("overdue", &CallRecord { cancel_requested: true, ..overdue.clone() }, DUE, "cancelled/cancelled"),
        ("overdue", &CallRecord { attempt: 3, ..overdue.clone() }, DUE, "failed/timeout"),
        ("no timeout", &CallRecord { timeout_ms: u64::MAX, ..overdue.clone() }, DUE, "look again in 15000 ms"),
        ("a cancel ends what waits", &call(CallState::Ready, 0), CallEvent::Cancel, "cancelled/cancelled"),
        ("a cancel ends what waits", &call(CallState::RetryWait, 1), CallEvent::Cancel, "cancelled/cancelled"),
        ("a cancel stops what runs", &running(), CallEvent::Cancel, "stop the worker"),
        ("a cancelled call may succeed", &cancelled, succeeded(), "succeeded"),
        ("it is not tried again", &cancelled, failed(&unavailable), "cancelled/cancelled"),
        ("it is not tried again", &cancelled, failed(&failure(ErrorClass::Lost)), "cancelled/cancelled"),
        ("it is not tried again", &cancelled, failed(&failure(ErrorClass::Timeout)), "cancelled/cancelled"),
        ("it stopped", &cancelled, failed(&failure(ErrorClass::Cancelled)), "cancelled/cancelled"),
        ("it is given back", &cancelled, CallEvent::Released, "cancelled/cancelled"),
    ] {
        assert_eq!(next(call, &event), wanted, "{rule}");
    }
}

#[test]
fn an_attempt_that_no_worker_reported_is_lost_or_overdue() {
    let limit = TimeDelta::milliseconds(1_000 + i64::try_from(TIMEOUT_MARGIN_MS).unwrap());
    let overdue = CallRecord { started_at: Some(now() - limit), ..running() };
    let expired = CallRecord { lease_until: Some(now()), ..running() };
    assert_eq!(failure_of(&expired, &DUE).class, ErrorClass::Lost);
    assert_eq!(failure_of(&overdue, &DUE).class, ErrorClass::Timeout);
    assert!(failure_of(&overdue, &DUE).effect_possible);
    // As after a time without dispatchers in which its worker died.
    let abandoned = CallRecord { lease_until: Some(now()), ..overdue };
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
fn nothing_moves_an_ended_call() {
    let failure = Failure::new(ErrorClass::Unavailable, "m");
    for state in CallState::ALL.into_iter().filter(|state| state.is_terminal()) {
        for event in [succeeded(), failed(&failure), CallEvent::Released, DUE, CallEvent::Cancel] {
            assert_eq!(next(&call(state, 1), &event), "unchanged", "{state} {event:?}");
        }
        assert!(!grants(&call(state, 1), &claim(2), now()), "{state}");
    }
}
