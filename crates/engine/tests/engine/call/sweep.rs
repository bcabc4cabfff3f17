//! Sweeps: what a sweep knows of each call reaches its plan.

use std::time::Duration;

use chrono::TimeDelta;
use redial_engine::{
    call::{JobState, Waiting},
    sweep::{Conditions, plan_due},
    tools::Tools,
};
use redial_proto::CallState;
use redial_records::{Backlog, CallRecord, Change};

use super::fixture::{self, now};

/// Makes a call of the n-th tool; if it runs, its lease has just ended.
fn call(n: u32, state: CallState) -> CallRecord {
    let lease_until = (state == CallState::Running).then(now);
    CallRecord { tool: format!("look-{n}"), lease_until, ..fixture::call(state, 1) }
}

/// Returns what a sweep with this grace does. The job of the first tool is queued; the others wait for workers.
fn sweep(calls: &[CallRecord], grace: Duration) -> Vec<Change> {
    let first = |call: &CallRecord| call.tool == "look-0";
    let conditions = Conditions {
        tools: &Tools::new(),
        grace: &|_| grace,
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
