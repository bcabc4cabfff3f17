//! What a conversation must remember: a call that failed for good does not run there again.

use std::collections::HashMap;

use chrono::TimeDelta;
use redial_proto::{CallState, TaskId};
use serde_json::Value;

use super::{
    evidence::{Asked, CallFacts, Evidence},
    violation::{Invariant, Subject, Violation},
};

/// For so long a failure is remembered.
const REMEMBERED: TimeDelta = TimeDelta::hours(1);
/// Classes of failures that say something about the call itself and that nothing else can make good. What a service was
/// at fault for passes, and a `business_rule` may be lifted by another call.
const FOR_GOOD: [&str; 5] = ["auth", "configuration", "invalid_arguments", "output_invalid", "output_too_large"];

/// Finds every call that ran although the same one had failed before.
pub(super) fn check(evidence: &Evidence) -> Vec<Violation> {
    let conversations: HashMap<TaskId, &(String, String)> =
        evidence.tasks.iter().map(|task| (task.id, &task.conversation)).collect();
    let mut tools: HashMap<_, Vec<(&CallFacts, &Asked)>> = HashMap::new();
    for call in evidence.calls.values() {
        let Some(asked) = call.asked_by.as_ref().filter(|asked| call.attempt > 0 && !asked.polling) else { continue };
        tools.entry((conversations.get(&asked.task), &call.tool)).or_default().push((call, asked));
    }
    let mut violations = Vec::new();
    for calls in tools.values_mut() {
        calls.sort_by_key(|(call, _)| (call.submitted_at, call.id));
        for (n, later) in calls.iter().enumerate() {
            if let Some((first, _)) = calls[..n].iter().rfind(|earlier| is_same(earlier, later))
                && failed_for_good(first)
            {
                let found = format!("ran although call {} had failed with {:?}", first.id, first.class);
                let about = Subject::Call(later.0.id);
                violations.push(Violation { invariant: Invariant::FailuresRemembered, about, found });
            }
        }
    }
    violations
}

/// True for the same arguments, if the end of the earlier one was known when the later one was asked for: a model sees
/// what became of a turn's calls only in the next turn.
fn is_same((first, asked): &(&CallFacts, &Asked), (later, again): &(&CallFacts, &Asked)) -> bool {
    let is_known =
        first.finished_at.is_some_and(|end| end < later.submitted_at && later.submitted_at < end + REMEMBERED);
    is_known && (asked.task, asked.turn) != (again.task, again.turn) && read(asked) == read(again)
}

fn read(asked: &Asked) -> Value {
    serde_json::from_str(&asked.arguments).unwrap()
}

fn failed_for_good(call: &CallFacts) -> bool {
    let lasts = call.class.as_deref().is_some_and(|class| FOR_GOOD.contains(&class));
    call.state == CallState::Unknown || (call.state == CallState::Failed && lasts)
}
