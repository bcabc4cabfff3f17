//! Sweeps: what a sweep knows of each call reaches its plan.

use std::time::Duration;

use chrono::TimeDelta;
use redial_engine::{
    call::{JobState, Waiting},
    sweep::{Conditions, plan_due},
    tools::Tools,
};
use redial_proto::{CallState, ToolEffect};
use redial_records::{Backlog, CallRecord, Change};

use super::fixture::{self, now};

/// A call of the n-th tool; if it runs, its lease has just ended.
fn call(n: u32, state: CallState) -> CallRecord {
    let lease_until = (state == CallState::Running).then(now);
    CallRecord { tool: format!("look-{n}"), lease_until, ..fixture::call(state, 1) }
}

const LEASE: Duration = Duration::from_secs(15);

/// What a sweep with this grace does. The job of the first tool is queued; the others wait for workers.
fn sweep(calls: &[CallRecord], grace: Duration) -> Vec<Change> {
    let first = |call: &CallRecord| call.tool == "look-0";
    let conditions = Conditions {
        tools: &Tools::new(),
        grace,
        lease: LEASE,
        job: &|call| if first(call) { JobState::Queued } else { JobState::Lost },
        waiting: &|call| if first(call) { Waiting::InBacklog } else { Waiting::ForWorker { last_seen: None } },
    };
    plan_due(calls, &conditions, || 0.5).into_iter().map(|transition| transition.change).collect()
}

#[test]
fn each_call_is_planned_with_what_is_known_of_it() {
    let late =
        |n| CallRecord { attempt: 0, backlog: Some(Backlog::Job), deadline_at: now(), ..call(n, CallState::Ready) };
    let calls = [call(0, CallState::RetryWait), call(1, CallState::RetryWait), call(0, CallState::Ready)];
    let calls = [&calls[..], &[call(1, CallState::Ready), late(0), late(1)]].concat();
    let waits = |backlog| Change::Wait { attempt: 1, backlog, check_at: now() + TimeDelta::seconds(60) };
    let found = sweep(&calls, Duration::ZERO);
    let queued = Change::Postpone { wake_at: now() + TimeDelta::seconds(10) };
    assert_eq!(found[..4], [waits(Backlog::Retry), waits(Backlog::Retry), queued, waits(Backlog::Job)]);
    let wanted = [
        "no worker started it before the call's total deadline",
        "no live worker had the tool \"look-1\" before the call's total deadline",
    ];
    for (change, wanted) in found[4..].iter().zip(wanted) {
        assert!(
            matches!(change, Change::End { failure: Some(failure), .. } if failure.message == wanted),
            "{change:?}"
        );
    }
    let running = [call(0, CallState::Running)];
    let grace = Duration::from_secs(5);
    assert_eq!(
        sweep(&running, grace),
        [Change::Postpone { wake_at: now() + grace }],
        "a lease expires after the grace"
    );
    assert!(matches!(sweep(&running, Duration::ZERO)[..], [Change::Retry { .. }]));
}

#[test]
fn an_attempt_that_a_heartbeat_proves_not_to_be_held_does_not_count() {
    // The lease has just ended; these are ms from then.
    let heard = |after_ms, effect, lease_ended_ms_ago| {
        let until = now() - TimeDelta::milliseconds(lease_ended_ms_ago);
        let worker_heard_after = Some(until + TimeDelta::milliseconds(after_ms));
        let running =
            CallRecord { worker_heard_after, lease_until: Some(until), effect, ..call(0, CallState::Running) };
        sweep(&[running], Duration::ZERO).remove(0)
    };
    let released = Change::Wait { attempt: 0, backlog: Backlog::Job, check_at: now() + TimeDelta::seconds(60) };
    for effect in [ToolEffect::Read, ToolEffect::Idempotent, ToolEffect::Keyed] {
        assert_eq!(heard(0, effect, 0), released, "{effect}");
    }
    // It lives and did not name the attempt, but may have begun it since.
    let later = Change::Postpone { wake_at: now() + LEASE / 3 };
    assert_eq!(heard(-1, ToolEffect::Unsafe, 0), later);
    assert_eq!(heard(-15_000, ToolEffect::Keyed, 0), later);
    // Nothing was proven for a whole lease more; or its last heartbeat was the one that renewed this lease.
    let unknown = |change: &Change| matches!(change, Change::End { state: CallState::Unknown, .. });
    // That it never began is not proven: its end may have been on record before the database was restored.
    assert!(unknown(&heard(0, ToolEffect::Unsafe, 0)));
    assert!(unknown(&heard(-1, ToolEffect::Unsafe, 15_000)));
    assert!(unknown(&heard(-15_001, ToolEffect::Unsafe, 0)));
    // A time that has not come yet proves nothing: the clock was set back.
    assert!(unknown(&heard(1, ToolEffect::Unsafe, 0)));
}

/// A worker that never names what it runs must not keep a call for ever.
#[test]
fn an_attempt_whose_job_was_published_often_counts_although_nobody_holds_it() {
    let published = |publish_no| {
        let running = CallRecord { publish_no, worker_heard_after: Some(now()), ..call(0, CallState::Running) };
        sweep(&[running], Duration::ZERO).remove(0)
    };
    assert!(matches!(published(6), Change::Wait { attempt: 0, .. }));
    assert!(matches!(published(7), Change::Retry { attempt, .. } if attempt.result.is_err()));
}

#[test]
fn a_cancelled_attempt_that_nobody_holds_may_have_done_its_work() {
    let (cancel_requested, worker_heard_after, effect) = (true, Some(now()), ToolEffect::Keyed);
    let running = CallRecord { cancel_requested, worker_heard_after, effect, ..call(0, CallState::Running) };
    let [Change::End { state, failure, attempt }] = &sweep(&[running], Duration::ZERO)[..] else { panic!("it ends") };
    assert_eq!(*state, CallState::Cancelled);
    assert_eq!(failure.as_ref().unwrap().message, "cancelled while it ran; the tool may have done its work");
    assert!(attempt.as_ref().unwrap().result.as_ref().unwrap_err().effect_possible);
}
