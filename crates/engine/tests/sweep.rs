//! Sweeps: retry budgets, the limit on jobs that are published again, grace after an outage.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

use std::{collections::HashMap, time::Duration};

use chrono::TimeDelta;
use redial_engine::{
    Time,
    sweep::{Conditions, SweepPlan, plan_due},
    tools::Tools,
};
use redial_proto::{CallId, CallState, ClaimId, RetryOverride, ToolEffect};
use redial_records::{CallRecord, Change, RetryBucket};
use uuid::Uuid;

fn now() -> Time {
    Time::default() + TimeDelta::days(20_000)
}

fn call(n: u128, state: CallState) -> CallRecord {
    CallRecord {
        id: CallId(Uuid::from_u128(n)),
        state,
        attempt: 1,
        tool: "look".to_owned(),
        pool: "default".to_owned(),
        effect: ToolEffect::Idempotent,
        retry: RetryOverride::default(),
        timeout_ms: 1_000,
        traceparent: None,
        deadline_at: now() + TimeDelta::hours(1),
        worker: Some("worker-1".parse().unwrap()),
        claim: Some(ClaimId(Uuid::nil())),
        lease_until: (state == CallState::Running).then(now),
        cancel_requested: false,
        publish_no: 2,
        published_at: now() - TimeDelta::seconds(20),
        origin: None,
        read_at: now(),
    }
}

fn calls(count: u128, state: CallState) -> Vec<CallRecord> {
    (0..count).map(|n| call(n, state)).collect()
}

fn bucket(tokens: Option<f64>, seconds: f64) -> [RetryBucket; 1] {
    [RetryBucket { tool: "look".to_owned(), tokens, seconds }]
}

struct Sweep<'a> {
    buckets: &'a [RetryBucket],
    successes: f64,
    grace: Duration,
    republish_limit: u32,
    queued: bool,
}

const SWEEP: Sweep<'_> =
    Sweep { buckets: &[], successes: 0.0, grace: Duration::ZERO, republish_limit: 100, queued: false };

impl Sweep<'_> {
    fn plan(&self, calls: &[CallRecord]) -> SweepPlan {
        let conditions = Conditions {
            tools: &Tools::new(),
            buckets: self.buckets,
            successes: &HashMap::from([("look".to_owned(), self.successes)]),
            grace: self.grace,
            republish_limit: self.republish_limit,
            queued: &|_| self.queued,
        };
        plan_due(calls, &conditions, || 0.5)
    }
}

fn published(plan: &SweepPlan) -> usize {
    plan.transitions.iter().filter(|transition| transition.publishes()).count()
}

#[test]
fn retries_cost_tokens_and_the_others_wait() {
    let waiting = calls(5, CallState::RetryWait);
    let plan = Sweep { buckets: &bucket(Some(2.5), 0.0), ..SWEEP }.plan(&waiting);
    assert_eq!((plan.transitions.len(), published(&plan)), (5, 2));
    assert!(plan.transitions[2..].iter().all(|one| matches!(one.change, Change::Postpone { .. })));
    assert_eq!((plan.tokens, plan.republished), (vec![("look".to_owned(), 0.5)], 0));
}

#[test]
fn a_tool_without_a_bucket_on_record_has_a_full_one() {
    let plan = Sweep { buckets: &bucket(None, 0.0), ..SWEEP }.plan(&calls(101, CallState::RetryWait));
    assert_eq!((published(&plan), plan.tokens), (100, vec![("look".to_owned(), 0.0)]));
}

#[test]
fn successes_and_time_earn_tokens() {
    let buckets = bucket(Some(0.0), 2.0);
    let plan = Sweep { buckets: &buckets, successes: 10.0, ..SWEEP }.plan(&calls(5, CallState::RetryWait));
    assert_eq!((published(&plan), plan.tokens), (3, vec![("look".to_owned(), 0.0)]));
}

#[test]
fn only_so_many_unclaimed_jobs_are_published_again() {
    let unclaimed = calls(5, CallState::Ready);
    let plan = Sweep { republish_limit: 3, ..SWEEP }.plan(&unclaimed);
    assert_eq!((published(&plan), plan.republished), (3, 3));
    let soon = now() + TimeDelta::seconds(1);
    assert!(plan.transitions[3..].iter().all(|one| one.change == Change::Postpone { wake_at: soon }));
    let plan = Sweep { queued: true, ..SWEEP }.plan(&unclaimed);
    assert_eq!((published(&plan), plan.republished), (0, 0), "their jobs are likely queued");
}

#[test]
fn a_lease_expires_only_after_the_grace() {
    let running = calls(1, CallState::Running);
    let grace = Duration::from_secs(5);
    let plan = Sweep { grace, ..SWEEP }.plan(&running);
    assert_eq!(plan.transitions[0].change, Change::Postpone { wake_at: now() + grace });
    assert!(matches!(SWEEP.plan(&running).transitions[0].change, Change::Retry { .. }));
}
