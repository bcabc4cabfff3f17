//! Sweeps: what a sweep knows of each call reaches its plan.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

use std::time::Duration;

use chrono::TimeDelta;
use redial_engine::{
    Time,
    call::{JobState, Waiting},
    sweep::{Conditions, plan_due},
    tools::Tools,
};
use redial_proto::{CallId, CallState, ClaimId, RetryOverride, ToolEffect};
use redial_records::{Backlog, CallRecord, Change};
use uuid::Uuid;

fn now() -> Time {
    Time::default() + TimeDelta::days(20_000)
}

fn call(n: u128, state: CallState) -> CallRecord {
    CallRecord {
        id: CallId(Uuid::from_u128(n)),
        state,
        attempt: 1,
        tool: format!("look-{n}"),
        pool: "default".to_owned(),
        effect: ToolEffect::Idempotent,
        retry: RetryOverride::default(),
        timeout_ms: 1_000,
        traceparent: None,
        deadline_at: now() + TimeDelta::hours(1),
        worker: Some("worker-1".parse().unwrap()),
        claim: Some(ClaimId(Uuid::nil())),
        lease_until: (state == CallState::Running).then(now),
        worker_heard_at: None,
        cancel_requested: false,
        publish_no: 2,
        published_at: Some(now() - TimeDelta::seconds(20)),
        consumer: Some("default".to_owned()),
        backlog: None,
        started_at: Some(now() - TimeDelta::seconds(20)),
        origin: None,
        read_at: now(),
    }
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
fn every_retry_that_is_due_waits_from_then_on_for_the_feeder() {
    let retries = [0, 1, 2].map(|n| call(n, CallState::RetryWait));
    let waits = Change::Wait { attempt: 1, backlog: Backlog::Retry, check_at: now() + TimeDelta::hours(1) };
    assert_eq!(sweep(&retries, Duration::ZERO), [waits.clone(), waits.clone(), waits]);
}

#[test]
fn of_unclaimed_calls_those_wait_whose_job_is_lost() {
    let unclaimed = [0, 1].map(|n| call(n, CallState::Ready));
    let found = sweep(&unclaimed, Duration::ZERO);
    let waits = Change::Wait { attempt: 1, backlog: Backlog::Job, check_at: now() + TimeDelta::hours(1) };
    assert_eq!(found, [Change::Postpone { wake_at: now() + TimeDelta::seconds(20) }, waits]);
}

#[test]
fn each_call_learns_why_it_waited() {
    let waiting = [0, 1].map(|n| CallRecord {
        attempt: 0,
        backlog: Some(Backlog::Job),
        deadline_at: now(),
        ..call(n, CallState::Ready)
    });
    let messages: Vec<String> = sweep(&waiting, Duration::ZERO)
        .into_iter()
        .filter_map(|change| match change {
            Change::End { failure, .. } => failure.map(|failure| failure.message),
            _ => None,
        })
        .collect();
    let wanted = [
        "no worker started it before the call's total deadline",
        "no live worker had the tool \"look-1\" before the call's total deadline",
    ];
    assert_eq!(messages, wanted);
}

#[test]
fn a_lease_expires_only_after_the_grace() {
    let running = [call(0, CallState::Running)];
    let grace = Duration::from_secs(5);
    assert_eq!(sweep(&running, grace), [Change::Postpone { wake_at: now() + grace }]);
    assert!(matches!(sweep(&running, Duration::ZERO)[..], [Change::Retry { .. }]));
}

#[test]
fn an_attempt_that_its_live_worker_does_not_hold_does_not_count() {
    let heard = |before_ms, effect| {
        let worker_heard_at = Some(now() - TimeDelta::milliseconds(before_ms));
        sweep(&[CallRecord { worker_heard_at, effect, ..call(0, CallState::Running) }], Duration::ZERO)
    };
    let released = Change::Wait { attempt: 0, backlog: Backlog::Job, check_at: now() + TimeDelta::hours(1) };
    assert_eq!(heard(7_500, ToolEffect::Keyed), [released]);
    // Silent for more than half of the lease: it may have died with the tool.
    assert!(matches!(heard(7_501, ToolEffect::Keyed)[..], [Change::Retry { .. }]));
    // Nothing proves that it did not begin.
    assert!(matches!(heard(0, ToolEffect::Unsafe)[..], [Change::End { state: CallState::Unknown, .. }]));
}
