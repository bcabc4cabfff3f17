//! What the clients of a tenant submit: a pure function of the seed. Both tenants submit the same, under the same keys and in
//! the same conversations, apart from the tenant's canary: a mix-up shows.

use std::path::Path;

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use redial_proto::{AgentRef, AgentSpec, CallState, RetryOverride, Submission, TaskSubmission, ToolEffect};
use redial_testkit::canary;
use serde_json::{Value, json, value::RawValue};

use crate::access::TENANTS;

/// The tool that has outages; it only reads.
pub(crate) const FRAGILE: &str = "fragile";
/// The tool that some workers lack at times.
pub(crate) const OPTIONAL: &str = "optional";
/// The tool of the calls that test whether calls are accepted and run.
pub(crate) const PROBED: &str = "read";
/// Calls of these may wait for long: clients do not wait for them while faults are injected.
pub(crate) const MAY_WAIT: [&str; 2] = [FRAGILE, OPTIONAL];
/// The model that the workers play.
pub(crate) const MODEL: &str = "played";
/// One in so many calls has an event at its end, and the tenant's canary in its key.
const TOLD: u32 = 4;
/// How long a call of a fault may wait and run, in all.
const DEADLINE_MS: u64 = 15 * 60 * 1000;
/// Returns every tool of the main pool that does what its arguments say, with its effect.
pub(crate) fn tools() -> Vec<(String, ToolEffect)> {
    let by_effect = ToolEffect::ALL.map(|effect| (effect.as_str().to_owned(), effect));
    let special = [(FRAGILE.to_owned(), ToolEffect::Read), (OPTIONAL.to_owned(), ToolEffect::Idempotent)];
    by_effect.into_iter().chain(special).collect()
}

/// A bare call, and whether its client cancels it.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCall {
    pub(crate) submission: Submission,
    pub(crate) cancel: bool,
}

/// Makes the calls of a tenant. `outage` is the file that means that the fragile tool is down.
pub(crate) fn calls(seed: u64, tenant: &str, count: u32, outage: &Path) -> Vec<PlannedCall> {
    let mut random = StdRng::seed_from_u64(seed ^ 0xCA11);
    (0..count).map(|n| call(n, tenant, outage, &mut random)).collect()
}

fn call(n: u32, tenant: &str, outage: &Path, random: &mut StdRng) -> PlannedCall {
    let mut orders = json!({"n": n, "output": json!({"of": canary(tenant)}).to_string(),
        "before_ms": random.random_range(0..40), "after_ms": random.random_range(0..40)});
    let tool = match random.random_range(0..10) {
        0..3 => FRAGILE,
        _ => ToolEffect::ALL[random.random_range(0..4)].as_str(),
    };
    if tool == FRAGILE {
        orders["down_while"] = json!(outage);
    }
    let cancel = random.random_range(0..100) == 0;
    match random.random_range(0..100) {
        // Long enough that some calls run whenever a fault is injected.
        0..5 => orders["before_ms"] = json!(random.random_range(500..2_000)),
        5..8 => orders["after_ms"] = json!(random.random_range(500..1_500)),
        8..10 => fails(&mut orders, "unavailable", Some(1), true),
        10 | 11 => fails(&mut orders, "rate_limited", Some(2), true),
        12 => fails(&mut orders, "business_rule", None, true),
        13 => fails(&mut orders, "unavailable", Some(1), false),
        14 => fails(&mut orders, "internal", None, false),
        _ => {}
    }
    let notify = n.is_multiple_of(TOLD);
    let submission = Submission { key: Some(key(n, tenant)), notify, ..Submission::new(tool, raw(&orders)) };
    PlannedCall { submission, cancel }
}

/// Makes a key. Most keys are those of the other tenant, too.
fn key(n: u32, tenant: &str) -> String {
    if n.is_multiple_of(TOLD) { format!("chaos-{n}-{}", canary(tenant)) } else { format!("chaos-{n}") }
}

fn fails(orders: &mut Value, class: &str, times: Option<u32>, harmless: bool) {
    orders["fail"] = json!(class);
    orders["times"] = json!(times);
    orders["harmless"] = json!(harmless);
}

/// True if a call may end like this, by the orders in its arguments.
pub(crate) fn may_end(wish: &PlannedCall, effect: ToolEffect, state: CallState) -> bool {
    let orders: Value = serde_json::from_str(wish.submission.arguments.get()).unwrap_or_default();
    let fails = !orders["fail"].is_null();
    // After some attempts it does not fail any more.
    let passes = orders["times"].is_u64();
    let is_unsafe = effect == ToolEffect::Unsafe;
    let is_repeated = orders["harmless"] == true || !is_unsafe;
    match state {
        CallState::Succeeded => !fails || passes && is_repeated,
        CallState::Failed => fails && !passes && is_repeated || wish.submission.tool == FRAGILE,
        CallState::Unknown => is_unsafe,
        CallState::Cancelled => wish.cancel,
        CallState::Ready
        | CallState::ClientWait
        | CallState::Running
        | CallState::RetryWait
        | CallState::Refused
        | CallState::Other => false,
    }
}

/// Makes a call that a fault submits; it must succeed.
pub(crate) fn of_fault(number: u64, tool: &str, orders: &Value) -> Submission {
    // Thousands may wait on a busy machine, and none may end because of that.
    let retry = RetryOverride { deadline_ms: Some(DEADLINE_MS), ..RetryOverride::default() };
    Submission { key: Some(format!("fault-{number}")), retry: Some(retry), ..Submission::new(tool, raw(orders)) }
}

/// Makes a call that tests whether calls are accepted.
pub(crate) fn probe(number: u64) -> Submission {
    Submission { key: Some(format!("probe-{number}")), ..Submission::new(PROBED, raw(&json!({"n": number}))) }
}

fn raw(value: &Value) -> Box<RawValue> {
    redial_testkit::arguments(value.clone())
}

/// Makes the tasks of a tenant. Every third continues the conversation of the one before.
pub(crate) fn tasks(seed: u64, tenant: &str, count: u32) -> Vec<TaskSubmission> {
    let mut random = StdRng::seed_from_u64(seed ^ 0x7A5C);
    let tools = ToolEffect::ALL.iter().map(|effect| effect.as_str().to_owned()).collect();
    let system = format!("You keep the books of {}.", canary(tenant));
    let agent = AgentSpec { tools, system, ..AgentSpec::new(MODEL) };
    let one = |n: u32| {
        let plan = PLANS[random.random_range(0..PLANS.len())];
        TaskSubmission {
            conversation: Some(format!("conversation-{}", n - n % 3 / 2)),
            key: Some(format!("task-{n}")),
            ..TaskSubmission::new(format!("{plan} {n} {}", canary(tenant)), AgentRef::Inline(Box::new(agent.clone())))
        }
    };
    (0..count).map(one).collect()
}

const PLANS: [&str; 4] = ["both", "damaged", "stubborn", "slow"];

pub(crate) fn script() -> String {
    TENANTS.map(|(tenant, _)| script_of(&canary(tenant))).concat()
}

/// Writes the script for a tenant: the model answers with the canary that it was asked with.
fn script_of(canary: &str) -> String {
    let output = json!({"of": canary}).to_string();
    SCRIPT.replace("OUTPUT", &format!("{output:?}")).replace("CANARY", canary)
}

/// The script for one tenant.
const SCRIPT: &str = r#"
[[rule]]
when = { last = "user", contains = ["both", "CANARY"] }
calls = [
    { name = "keyed", arguments = { n = 1, before_ms = 20, output = OUTPUT } },
    { name = "unsafe", arguments = { n = 2, after_ms = 20, output = OUTPUT } },
]

[[rule]]
when = { last = "user", contains = ["damaged", "CANARY"] }
calls = [
    { name = "idempotent", arguments = "{'n': 4, 'before_ms': 10,}" },
    { name = "no_such_tool", arguments = {} },
]

[[rule]]
when = { last = "user", contains = ["stubborn", "CANARY"] }
calls = [{ name = "read", arguments = { n = 5, fail = "business_rule", harmless = true } }]

[[rule]]
when = { last = "tool", class = "business_rule", user = "CANARY" }
calls = [
    { name = "read", arguments = { n = 6, output = OUTPUT } },
    { name = "idempotent", arguments = { n = 7, fail = "unavailable", times = 1, output = OUTPUT } },
]

[[rule]]
when = { last = "user", contains = ["slow", "CANARY"] }
calls = [
    { name = "unsafe", arguments = { n = 8, before_ms = 700, output = OUTPUT } },
    { name = "keyed", arguments = { n = 9, after_ms = 900, output = OUTPUT } },
]
delay = "300ms"

[[rule]]
when = { user = "CANARY" }
text = "done CANARY"
delay = "50ms"
usage = { input_tokens = 100, output_tokens = 5 }
"#;

/// Writes the file of models that names the script.
pub(crate) fn models(script: &Path) -> String {
    format!(
        "[models.{MODEL}]\nprovider = \"script\"\nscript = {:?}\n\
         retry = {{ initial = \"50ms\", cap = \"300ms\", max_attempts = 20 }}\n",
        script.display().to_string()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tool, its orders, whether the client cancels, and how the call may end.
    type Row = (&'static str, Value, bool, &'static [CallState]);

    #[test]
    fn orders_say_how_a_call_may_end() {
        use redial_proto::CallState::{Cancelled, Failed, Succeeded, Unknown};
        let ends = |tool: &str, orders: Value, cancel: bool| {
            let wish = PlannedCall { submission: Submission::new(tool, raw(&orders)), cancel };
            let effect =
                tools().into_iter().find(|(name, _)| name == tool).map_or(ToolEffect::Read, |(_, effect)| effect);
            let states = [Succeeded, Failed, Unknown, Cancelled].into_iter();
            states.filter(|state| may_end(&wish, effect, *state)).collect()
        };
        let table: [Row; 7] = [
            ("read", json!({}), false, &[Succeeded]),
            ("read", json!({}), true, &[Succeeded, Cancelled]),
            ("unsafe", json!({}), false, &[Succeeded, Unknown]),
            ("keyed", json!({"fail": "unavailable", "times": 1, "harmless": false}), false, &[Succeeded]),
            ("unsafe", json!({"fail": "unavailable", "times": 1, "harmless": false}), false, &[Unknown]),
            ("keyed", json!({"fail": "internal", "times": null, "harmless": false}), false, &[Failed]),
            ("unsafe", json!({"fail": "business_rule", "times": null, "harmless": true}), false, &[Failed, Unknown]),
        ];
        for (tool, orders, cancel, wanted) in table {
            let found: Vec<CallState> = ends(tool, orders.clone(), cancel);
            assert_eq!(found, wanted, "{tool} {orders}");
        }
    }
}
