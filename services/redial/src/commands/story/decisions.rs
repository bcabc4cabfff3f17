//! What was decided in one step, in words.

use redial_proto::{FieldError, Message, Repair, Role, TaskDecision, TaskState, TaskStep};
use serde::Deserialize;

use super::{
    Narrator, Seen,
    page::{Entry, Ink},
    quote, totals,
};
use crate::output;

/// One step on its way into words.
pub(super) struct Telling<'a> {
    narrator: &'a Narrator,
    step: &'a TaskStep,
    seen: Seen,
}

/// What of the feedback is shown beside its class and message. A user's own template may look otherwise.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Feedback {
    details: Vec<FieldError>,
}

/// Where a call stands in its task, and what it is.
struct Call<'a> {
    turn: u32,
    call_index: u32,
    id: &'a str,
    tool: &'a str,
}

impl<'a> Telling<'a> {
    pub(super) fn new(narrator: &'a Narrator, step: &'a TaskStep, seen: Seen) -> Self {
        Self { narrator, step, seen }
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.step.decisions.iter().flat_map(|decision| self.decision(decision)).collect()
    }

    fn decision(&self, decision: &TaskDecision) -> Vec<Entry> {
        match decision {
            TaskDecision::Message { seq } => {
                self.narrator.messages.get(seq).map(|m| self.message(m)).unwrap_or_default()
            }
            TaskDecision::Run { turn, call_index, id, tool, repairs } => {
                self.run(&Call { turn: *turn, call_index: *call_index, id, tool }, repairs)
            }
            TaskDecision::Answered { turn, call_index, id, tool, .. } => {
                self.answered(&Call { turn: *turn, call_index: *call_index, id, tool }, decision)
            }
            other => change_of_course(other).into_iter().collect(),
        }
    }

    fn message(&self, message: &Message) -> Vec<Entry> {
        let said = |label, ink| vec![Entry::new(label, ink, quote::quoted(&message.content))];
        match message.role {
            Role::System => said("instructions", Ink::Dim),
            Role::User if message.by_redial => said("redial", Ink::Yellow),
            Role::User => said("user", Ink::Bold),
            Role::Assistant => self.assistant(message),
            Role::Tool if message.call_id.as_deref().is_some_and(|id| self.mentions(id)) => Vec::new(),
            Role::Tool => said("tool", Ink::Dim),
        }
    }

    fn assistant(&self, message: &Message) -> Vec<Entry> {
        let thought = message.thought.as_deref().filter(|thought| !self.seen.thought && !thought.trim().is_empty());
        let text = Some(message.content.as_str()).filter(|text| !self.seen.text && !text.trim().is_empty());
        let mut entries = Vec::new();
        entries.extend(thought.map(|thought| Entry::new("thinks", Ink::Dim, quote::quoted(thought))));
        entries.extend(text.map(|text| Entry::new("says", Ink::Cyan, quote::quoted(text))));
        for call in message.calls.iter().filter(|call| !self.mentions(&call.id)) {
            let text = format!("{} {}", output::plain(&call.tool), quote::json(&call.arguments));
            entries.push(Entry::new("waits", Ink::Dim, text));
        }
        entries
    }

    /// True if a decision of this step is about this call.
    fn mentions(&self, call: &str) -> bool {
        self.step.decisions.iter().any(|decision| match decision {
            TaskDecision::Run { id, .. } | TaskDecision::Answered { id, .. } => id == call,
            _ => false,
        })
    }

    fn run(&self, call: &Call<'_>, repairs: &[Repair]) -> Vec<Entry> {
        let mut entries = vec![Entry::new(call.label("call"), Ink::Bold, self.with_arguments(call))];
        entries.extend(repairs.iter().map(|repair| Entry::new("repaired", Ink::Yellow, repair.to_string())));
        entries
    }

    fn with_arguments(&self, call: &Call<'_>) -> String {
        let arguments = self.narrator.calls.get(call.id).map(|call| format!(" {}", quote::json(&call.arguments)));
        format!("{}{}", output::plain(call.tool), arguments.unwrap_or_default())
    }

    fn answered(&self, call: &Call<'_>, decision: &TaskDecision) -> Vec<Entry> {
        let TaskDecision::Answered { ran, class, message, corrections_left, .. } = decision else { return Vec::new() };
        let what = if *ran { self.with_duration(call) } else { self.with_arguments(call) };
        let content = self.narrator.results.get(call.id).map_or("", |message| message.content.as_str());
        let Some(class) = class else {
            let label = if *ran { "result" } else { "answer" };
            return vec![Entry::new(call.label(label), Ink::Green, format!("{what}: {}", quote::json(content)))];
        };
        let details = serde_json::from_str::<Feedback>(content).unwrap_or_default().details;
        // The usual message of broken rules repeats them all in one line.
        let message = message.as_deref().filter(|message| !repeats(message, &details));
        let message = message.map(|message| format!(": {}", quote::quoted(message))).unwrap_or_default();
        let end = if *ran { ": " } else { "\n" };
        let mut text = format!("{what}{end}{class}{message}");
        let left = corrections_left.map(|left| format!("corrections left: {left}"));
        for line in details.iter().map(quote::violation).chain(left) {
            text.push('\n');
            text.push_str(&line);
        }
        let label = if *ran { "feedback" } else { "refused" };
        vec![Entry::new(call.label(label), Ink::Red, text)]
    }

    fn with_duration(&self, call: &Call<'_>) -> String {
        let tool = output::plain(call.tool);
        match self.narrator.begun.get(&(call.turn, call.call_index)) {
            Some((_, since)) => format!("{tool} after {}", totals::span(self.step.at - *since)),
            None => tool,
        }
    }
}

impl Call<'_> {
    fn label(&self, what: &str) -> String {
        format!("{what} {}.{}", self.turn, self.call_index)
    }
}

fn repeats(message: &str, details: &[FieldError]) -> bool {
    !details.is_empty() && details.iter().all(|detail| message.contains(&detail.to_string()))
}

fn change_of_course(decision: &TaskDecision) -> Option<Entry> {
    Some(match decision {
        TaskDecision::Turn { turn, model, last } => {
            let last = if *last { " for a last answer, without tools" } else { "" };
            Entry::new(format!("turn {turn}"), Ink::Cyan, format!("{model} is asked{last}"))
        }
        TaskDecision::Nudged { problem } => Entry::new("say it again", Ink::Yellow, quote::quoted(problem)),
        TaskDecision::Fallback { model, because, pruned } => {
            let mut text = format!("{model} takes over: {}", quote::quoted(because));
            if !pruned.is_empty() {
                text.push_str(&format!("\ntaken out of the models' sight: {}", pruned.join(", ")));
            }
            Entry::new("fallback", Ink::Yellow, text)
        }
        TaskDecision::Returned { model } => Entry::new("return", Ink::Yellow, format!("{model} goes on")),
        TaskDecision::LastAnswer { code } => Entry::new(
            "limit",
            Ink::Yellow,
            format!("{code}: what still runs is stopped, then a last answer is asked for"),
        ),
        TaskDecision::Stopping { calls } => {
            let calls = totals::count((*calls).into(), "call");
            Entry::new("stopping", Ink::Yellow, format!("{calls} still running"))
        }
        TaskDecision::Ended { state, code, message } => {
            let message = message.as_deref().map(|message| format!("; {}", quote::quoted(message))).unwrap_or_default();
            let ink = if *state == TaskState::Succeeded { Ink::Green } else { Ink::Red };
            Entry::new(state.as_str(), ink, format!("{code}{message}"))
        }
        TaskDecision::Message { .. } | TaskDecision::Run { .. } | TaskDecision::Answered { .. } => return None,
    })
}
