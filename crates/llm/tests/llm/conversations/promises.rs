//! Rules about calls besides their answers: a call that failed for its arguments does not run again, and no call exceeds
//! the limits.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use redial_engine::{
    Time,
    task::{Event, Verdict, WantedCall},
};
use redial_proto::{AgentSpec, ErrorClass, Usage};
use serde_json::Value;

/// A failure for a call's arguments is remembered at least this long.
const REMEMBERED: TimeDelta = TimeDelta::minutes(59);

/// A tool, its version, and the arguments without whitespace.
type Call = (String, String, String);

#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// Calls that failed for their arguments, and when.
    failed: BTreeMap<Call, Time>,
    /// The calls of the last reply: version, polling.
    proposed: Vec<(String, bool)>,
    running: BTreeMap<(u32, u32), Call>,
    pub(crate) runs: u32,
    pub(crate) usage: Usage,
}

impl Promises {
    /// Starts the next task of the conversation, which remembers the failures.
    pub(crate) fn next_task(&mut self) {
        *self = Self { failed: std::mem::take(&mut self.failed), ..Self::default() };
    }

    /// A reply that counts.
    pub(crate) fn replied(&mut self, event: &Event) {
        let Event::TurnEnded { end: Ok(reply), .. } = event else { return };
        self.usage.add(&reply.usage);
        let known = |verdict: &Verdict| match verdict {
            Verdict::Run { version, polling, .. } => (version.clone(), *polling),
            _ => (String::new(), false),
        };
        self.proposed = reply.calls.iter().map(|call| known(&call.verdict)).collect();
    }

    pub(crate) fn call_ended(&mut self, event: &Event, now: Time) {
        let Event::CallEnded { turn, call_index, end } = event else { return };
        let Some(call) = self.running.remove(&(*turn, *call_index)) else { return };
        match end {
            Ok(_) => drop(self.failed.remove(&call)),
            Err(failure) if failure.class == ErrorClass::InvalidArguments && !failure.effect_possible => {
                self.failed.insert(call, now);
            }
            Err(_) => {}
        }
    }

    pub(crate) fn starts(&mut self, call: &WantedCall, agent: &AgentSpec, now: Time) -> Result<(), String> {
        self.runs += 1;
        if self.runs > agent.budgets.tool_calls {
            return Err(format!("{} tool calls, {} are allowed", self.runs, agent.budgets.tool_calls));
        }
        let (version, polling) = self.proposed[call.call_index as usize - 1].clone();
        let arguments: Value = serde_json::from_str(&call.arguments).map_err(|error| format!("it runs: {error}"))?;
        let this = (call.tool.clone(), version, arguments.to_string());
        if !polling && self.failed.get(&this).is_some_and(|then| now - *then < REMEMBERED) {
            return Err(format!("{this:?} failed before and runs again"));
        }
        self.running.insert((call.turn, call.call_index), this);
        Ok(())
    }
}
