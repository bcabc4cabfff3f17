//! What becomes of calls that are due.

use std::time::Duration;

use redial_records::{CallRecord, Transition};

use crate::{
    call::{CallEvent, JobState, Waiting, plan},
    tools::{Tools, retry_policy},
};

/// What a sweep knows besides the calls.
pub struct Conditions<'a> {
    /// The registered tools.
    pub tools: &'a Tools,
    /// No lease counts as expired for so long: [`crate::outage::OutageDetector::grace`].
    pub grace: Duration,
    /// How long a lease is: workers send a heartbeat every third of it.
    pub lease: Duration,
    /// What is known of the job of a ready call.
    pub job: &'a dyn Fn(&CallRecord) -> JobState,
    /// Why a call waits in the backlog.
    pub waiting: &'a dyn Fn(&CallRecord) -> Waiting,
}

/// Plans for calls that are due, one transition each. `random` gives numbers in `[0, 1)`, which spread retries.
pub fn plan_due(calls: &[CallRecord], conditions: &Conditions<'_>, mut random: impl FnMut() -> f64) -> Vec<Transition> {
    let planned = calls.iter().filter_map(|call| {
        let event = CallEvent::Due {
            grace_until: call.read_at + conditions.grace,
            job: (conditions.job)(call),
            waiting: (conditions.waiting)(call),
            disowned: is_disowned(call, conditions.lease),
        };
        plan(call, &retry_policy(conditions.tools, &call.tool), &event, call.read_at, random())
    });
    planned.collect()
}

/// Whether the worker was heard in the second half of the lease: its heartbeat names what it runs and what it could not report
/// yet, and would have renewed the lease.
fn is_disowned(call: &CallRecord, lease: Duration) -> bool {
    call.worker_heard_at.zip(call.lease_until).is_some_and(|(heard, until)| heard >= until - lease / 2)
}
