//! What becomes of calls that are due.

use std::collections::{BTreeMap, HashMap};

use redial_proto::CallState;
use redial_records::{CallRecord, RetryBucket, Time, Transition};

use crate::{
    Budget,
    call::{CallEvent, Republish, plan},
    tools::{Tools, retry_policy},
};

/// What a sweep knows besides the calls.
pub struct Conditions<'a> {
    /// The registered tools.
    pub tools: &'a Tools,
    /// The retry budgets of all tools with a due retry, as they are on record.
    pub buckets: &'a [RetryBucket],
    /// Successes per tool since they were last credited to its budget.
    pub successes: &'a HashMap<String, f64>,
    /// No lease counts as expired for so long: [`crate::outage::OutageDetector::grace`].
    pub grace: std::time::Duration,
    /// How many jobs of unclaimed calls may be published again.
    pub republish_limit: u32,
    /// Pools whose queue holds jobs that no worker has pulled.
    pub queued: &'a dyn Fn(&str) -> bool,
}

/// What is to be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepPlan {
    /// One for each due call.
    pub transitions: Vec<Transition>,
    /// The retry tokens that are left, by tool.
    pub tokens: Vec<(String, f64)>,
    /// How many jobs of unclaimed calls are published again.
    pub republished: u32,
}

/// Plans for calls that are due. `random` gives numbers in `[0, 1)`, which spread retries.
pub fn plan_due(calls: &[CallRecord], conditions: &Conditions<'_>, mut random: impl FnMut() -> f64) -> SweepPlan {
    let mut allowed = Allowed::new(calls, conditions);
    let mut republished = 0;
    let transitions = calls.iter().filter_map(|call| {
        let republish = match (republished < conditions.republish_limit, (conditions.queued)(&call.pool)) {
            (false, _) => Republish::Later,
            (true, true) => Republish::IfOverdue,
            (true, false) => Republish::Now,
        };
        let retry_allowed = call.state == CallState::RetryWait && allowed.take(&call.tool);
        let event = CallEvent::Due { retry_allowed, grace_until: after(call.read_at, conditions), republish };
        let policy = retry_policy(conditions.tools, &call.tool);
        let transition = plan(call, &policy, &event, call.read_at, random())?;
        republished += u32::from(call.state == CallState::Ready && transition.publishes());
        Some(transition)
    });
    let transitions = transitions.collect();
    SweepPlan { transitions, tokens: allowed.tokens, republished }
}

fn after(now: Time, conditions: &Conditions<'_>) -> Time {
    now + conditions.grace
}

/// Retries that the budgets allow.
struct Allowed<'a> {
    granted: BTreeMap<&'a str, u32>,
    tokens: Vec<(String, f64)>,
}

impl<'a> Allowed<'a> {
    fn new(calls: &[CallRecord], conditions: &Conditions<'a>) -> Self {
        let mut allowed = Self { granted: BTreeMap::new(), tokens: Vec::with_capacity(conditions.buckets.len()) };
        for RetryBucket { tool, tokens, seconds } in conditions.buckets {
            let budget = tokens.map_or_else(Budget::full, |tokens| Budget { tokens });
            let successes = conditions.successes.get(tool).copied().unwrap_or(0.0);
            let mut budget = budget.earned(successes, *seconds);
            let due = calls.iter().filter(|call| call.state == CallState::RetryWait && call.tool == *tool);
            let granted = due.take_while(|_| budget.take()).count();
            allowed.granted.insert(tool, u32::try_from(granted).unwrap_or(0));
            allowed.tokens.push((tool.clone(), budget.tokens));
        }
        allowed
    }

    fn take(&mut self, tool: &str) -> bool {
        match self.granted.get_mut(tool) {
            Some(tokens) if *tokens > 0 => {
                *tokens -= 1;
                true
            }
            _ => false,
        }
    }
}
