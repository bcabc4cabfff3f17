//! What becomes of calls that are due.

use std::time::Duration;

use redial_records::{CallRecord, Transition};

use crate::{
    call::{CallEvent, JobState, Waiting, plan},
    tools::{Tools, retry_policy},
};

/// What a sweep knows besides the calls.
pub struct Conditions<'a> {
    pub tools: &'a Tools,
    /// For how long the lease of a call does not count as expired: [`crate::outage::OutageDetector::grace`], and a whole lease for one
    /// that was locked as it ended, so that neither heartbeat nor report could be written.
    pub grace: &'a dyn Fn(&CallRecord) -> Duration,
    /// What is known of the job of a ready call.
    pub job: &'a dyn Fn(&CallRecord) -> JobState,
    /// Why a call waits in the backlog.
    pub waiting: &'a dyn Fn(&CallRecord) -> Waiting,
}

/// Plans for calls that are due, one transition each. `random` gives numbers in `[0, 1)`, which spread retries.
pub fn plan_due(calls: &[CallRecord], conditions: &Conditions<'_>, mut random: impl FnMut() -> f64) -> Vec<Transition> {
    let planned = calls.iter().filter_map(|call| {
        let event = CallEvent::Due {
            grace_until: call.read_at + (conditions.grace)(call),
            job: (conditions.job)(call),
            waiting: (conditions.waiting)(call),
        };
        plan(call, &retry_policy(conditions.tools, &call.tool), &event, call.read_at, random())
    });
    planned.collect()
}
