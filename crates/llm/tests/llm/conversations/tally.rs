//! Counts what the histories reached: a test that reaches nothing proves nothing.

use std::collections::BTreeMap;

use redial_engine::task::Step;
use redial_proto::TaskDecision;

/// How often each thing happened, by name.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<String, u64>);

impl Tally {
    pub(crate) fn note(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    pub(crate) fn step(&mut self, step: &Step) {
        self.note("step");
        for decision in &step.decisions {
            self.note(format!("decision {}", kind(decision)));
            match decision {
                TaskDecision::Ended { code, .. } => self.note(format!("code {code}")),
                TaskDecision::Nudged { asked, .. } => self.note(format!("asked for {asked:?}")),
                TaskDecision::LastAnswer { code } => self.note(format!("last answer {code}")),
                TaskDecision::Answered { class: Some(class), ran, .. } => {
                    self.note(format!("{} with {class}", if *ran { "ran" } else { "did not run" }));
                }
                _ => {}
            }
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        for (what, times) in other.0 {
            *self.0.entry(what).or_default() += times;
        }
    }

    pub(crate) fn times(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }

    pub(crate) fn lines(&self) -> String {
        self.0.iter().map(|(what, times)| format!("{times:>9}  {what}")).collect::<Vec<_>>().join("\n")
    }
}

fn kind(decision: &TaskDecision) -> &'static str {
    match decision {
        TaskDecision::Message { .. } => "message",
        TaskDecision::Turn { .. } => "turn",
        TaskDecision::Run { .. } => "run",
        TaskDecision::Answered { .. } => "answered",
        TaskDecision::Nudged { .. } => "nudged",
        TaskDecision::Accepted { .. } => "accepted",
        TaskDecision::Fallback { .. } => "fallback",
        TaskDecision::Returned { .. } => "returned",
        TaskDecision::LastAnswer { .. } => "last_answer",
        TaskDecision::Stopping { .. } => "stopping",
        TaskDecision::Ended { .. } => "ended",
        TaskDecision::Unknown => "unknown",
    }
}
