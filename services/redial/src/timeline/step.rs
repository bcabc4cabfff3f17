//! The text of each event of a task.

use redial_proto::{
    FieldError, Message, Nudged, Repair, Role, TaskCode, TaskDecision, TaskInput, TaskState, TaskStep, turn,
};
use serde::Deserialize;

use super::{
    entry::{Drawing, Entry, Event, Ink, Party},
    task::TaskTimeline,
    text, totals,
};
use crate::output;

/// The text of what this version cannot read.
const UNKNOWN: &str = "a newer version of Redial recorded something that this one does not know";

/// Which parts of a model's message were printed while the model wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Printed {
    pub(crate) thought: bool,
    pub(crate) text: bool,
}

impl TaskTimeline {
    /// Returns the next step as an event. `details` follow the entry of the step's input. An event may have no entries.
    pub(crate) fn event(&mut self, step: &TaskStep, printed: Printed, details: Vec<Entry>) -> Event {
        let mut entries: Vec<_> = self.input(step).into_iter().collect();
        let render = Step { timeline: self, recorded: step, printed };
        entries.extend(step.decisions.iter().flat_map(|decision| render.decision(decision)));
        let first = entries.len().min(1);
        entries.splice(first..first, details);
        self.remember(step);
        Event { time: text::offset(self.submitted_at, step.at), entries }
    }

    fn input(&self, step: &TaskStep) -> Option<Entry> {
        Some(match &step.input {
            TaskInput::Started { first_seq, .. } => {
                let conversation = output::one_line(&self.conversation, 200);
                let from = if *first_seq > 1 { format!(", at message {first_seq}") } else { String::new() };
                Entry::new("started", Ink::Bold, format!("in conversation {conversation}{from}"))
            }
            TaskInput::TurnEnded { turn, .. } => self.turn_ended(*turn, step),
            TaskInput::Retrying { turn, call_index, tool, attempt, class, message, next_at, .. } => {
                let (label, party) = match turn::model_name(tool) {
                    Some(model) => (format!("retry {turn}"), Party::Model(model.to_owned())),
                    None => (format!("retry {turn}.{call_index}"), Party::Tool(tool.clone())),
                };
                let retry = text::retry(*attempt, Some(class.as_str()), Some(message), *next_at, step.at);
                let tool = turn::model_name(tool).unwrap_or(tool);
                Entry::new(label, Ink::Yellow, format!("{tool}: {retry}")).drawn(Drawing::Failed(party))
            }
            TaskInput::CancelRequested => {
                Entry::new("cancel", Ink::Yellow, "requested").drawn(Drawing::From(Party::User))
            }
            TaskInput::Unknown => Entry::new("unknown", Ink::Red, UNKNOWN),
            TaskInput::CallEnded { .. } | TaskInput::Woken => return None,
        })
    }

    fn turn_ended(&self, turn: u32, step: &TaskStep) -> Entry {
        let label = format!("turn {turn}");
        let Some((model, since)) = self.started.get(&(turn, 0)) else {
            return Entry::new(label, Ink::Cyan, "the model finished");
        };
        let party = Party::Model(model.clone());
        let drawing = if self.model_message(step).is_some() { Drawing::From(party) } else { Drawing::Failed(party) };
        let text = format!("{model} finished after {}", text::span(step.at - *since));
        Entry::new(label, Ink::Cyan, text).drawn(drawing)
    }
}

struct Step<'a> {
    timeline: &'a TaskTimeline,
    recorded: &'a TaskStep,
    printed: Printed,
}

/// The part of a feedback that is shown beside its class and message. A user's template may have another form.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Feedback {
    details: Vec<FieldError>,
}

/// A call and its position in its task.
struct AskedCall<'a> {
    turn: u32,
    call_index: u32,
    id: &'a str,
    tool: &'a str,
}

impl Step<'_> {
    fn decision(&self, decision: &TaskDecision) -> Vec<Entry> {
        match decision {
            TaskDecision::Message { seq } => {
                self.timeline.messages.get(seq).map(|message| self.message(message)).unwrap_or_default()
            }
            TaskDecision::Run { turn, call_index, id, tool, repairs, client } => {
                self.run(&AskedCall { turn: *turn, call_index: *call_index, id, tool }, repairs, *client)
            }
            TaskDecision::Answered { turn, call_index, id, tool, .. } => self
                .answered(&AskedCall { turn: *turn, call_index: *call_index, id, tool }, decision)
                .into_iter()
                .collect(),
            other => change_of_course(other).into_iter().collect(),
        }
    }

    fn message(&self, message: &Message) -> Vec<Entry> {
        let entry = |label, ink| Entry::new(label, ink, text::excerpt(&message.content));
        match message.role {
            Role::System => vec![entry("instructions", Ink::Dim)],
            Role::User if message.by_redial => vec![entry("redial", Ink::Yellow)],
            Role::User => vec![entry("user", Ink::Bold).drawn(Drawing::From(Party::User))],
            Role::Assistant => self.assistant(message),
            Role::Tool if message.call_id.as_deref().is_some_and(|id| self.mentions(id)) => Vec::new(),
            Role::Tool => vec![entry("tool", Ink::Dim)],
        }
    }

    fn assistant(&self, message: &Message) -> Vec<Entry> {
        let thought = message.thought.as_deref().filter(|thought| !self.printed.thought && !thought.trim().is_empty());
        let said = Some(message.content.as_str()).filter(|text| !self.printed.text && !text.trim().is_empty());
        let drawing = match &self.recorded.input {
            TaskInput::TurnEnded { turn, .. } => self.timeline.started.get(&(*turn, 0)),
            _ => None,
        }
        .map_or(Drawing::Hidden, |(model, _)| Drawing::From(Party::Model(model.clone())));
        let mut entries = Vec::new();
        entries.extend(thought.map(|thought| Entry::new("thinks", Ink::Dim, text::excerpt(thought))));
        entries.extend(said.map(|said| Entry::new("says", Ink::Cyan, text::excerpt(said)).drawn(drawing)));
        for call in message.calls.iter().filter(|call| !self.mentions(&call.id)) {
            let text = format!("{} {}", output::plain(&call.tool), text::json(&call.arguments));
            entries.push(Entry::new("waits", Ink::Dim, text));
        }
        entries
    }

    /// Returns true if a decision of this step is about this call.
    fn mentions(&self, call: &str) -> bool {
        self.recorded.decisions.iter().any(|decision| match decision {
            TaskDecision::Run { id, .. } | TaskDecision::Answered { id, .. } => id == call,
            _ => false,
        })
    }

    fn run(&self, call: &AskedCall<'_>, repairs: &[Repair], client: bool) -> Vec<Entry> {
        let tool = Party::Tool(call.tool.to_owned());
        let label = call.label(if client { "client" } else { "call" });
        let mut entries = vec![Entry::new(label, Ink::Bold, self.with_arguments(call)).drawn(Drawing::To(tool))];
        entries.extend(
            repairs.iter().map(|repair| Entry::new("repaired", Ink::Yellow, repair.to_string()).drawn(Drawing::Note)),
        );
        entries
    }

    fn with_arguments(&self, call: &AskedCall<'_>) -> String {
        let arguments = self.timeline.calls.get(call.id).map(|call| format!(" {}", text::json(&call.arguments)));
        format!("{}{}", output::plain(call.tool), arguments.unwrap_or_default())
    }

    /// Returns nothing for other decisions.
    fn answered(&self, call: &AskedCall<'_>, decision: &TaskDecision) -> Option<Entry> {
        let TaskDecision::Answered { ran, class, message, corrections_left, .. } = decision else { return None };
        let what = if *ran { self.with_duration(call) } else { self.with_arguments(call) };
        let content = self.timeline.results.get(call.id).map_or("", |message| message.content.as_str());
        let drawing = |arrow: fn(Party) -> Drawing| {
            if *ran { arrow(Party::Tool(call.tool.to_owned())) } else { Drawing::Note }
        };
        let Some(class) = class else {
            let label = call.label(if *ran { "result" } else { "answer" });
            let text = format!("{what}: {}", text::json(content));
            return Some(Entry::new(label, Ink::Green, text).drawn(drawing(Drawing::From)));
        };
        let details = serde_json::from_str::<Feedback>(content).unwrap_or_default().details;
        // The usual message repeats all field errors in one line.
        let message = message.as_deref().filter(|message| !repeats(message, &details));
        let message = message.map(|message| format!(": {}", text::excerpt(message))).unwrap_or_default();
        let separator = if *ran { ": " } else { "\n" };
        let mut lines = vec![format!("{what}{separator}{class}{message}")];
        lines.extend(details.iter().map(text::field_error));
        lines.extend(corrections_left.map(|left| format!("corrections left: {left}")));
        let label = call.label(if *ran { "feedback" } else { "refused" });
        Some(Entry::new(label, Ink::Red, lines.join("\n")).drawn(drawing(Drawing::Failed)))
    }

    fn with_duration(&self, call: &AskedCall<'_>) -> String {
        let tool = output::plain(call.tool);
        match self.timeline.started.get(&(call.turn, call.call_index)) {
            Some((_, since)) => format!("{tool} after {}", text::span(self.recorded.at - *since)),
            None => tool,
        }
    }
}

impl AskedCall<'_> {
    fn label(&self, what: &str) -> String {
        format!("{what} {}.{}", self.turn, self.call_index)
    }
}

fn repeats(message: &str, details: &[FieldError]) -> bool {
    !details.is_empty() && details.iter().all(|detail| message.contains(&detail.to_string()))
}

/// Says what a model is asked for whose answer was not taken.
const fn asked_for(asked: Nudged) -> &'static str {
    match asked {
        Nudged::Answer => "for an answer",
        Nudged::Form => "for the right form",
        Nudged::Shorter => "for a shorter answer",
        Nudged::Rest => "for the rest",
    }
}

fn change_of_course(decision: &TaskDecision) -> Option<Entry> {
    let note = |label: &str, ink, text: String| Entry::new(label, ink, text).drawn(Drawing::Note);
    Some(match decision {
        TaskDecision::Turn { turn, model, last, continues } => {
            let what = match (last, continues) {
                (true, _) => " for a last answer, without tools",
                (false, true) => " for the rest of the answer, without tools",
                (false, false) => "",
            };
            let entry = Entry::new(format!("turn {turn}"), Ink::Cyan, format!("asks {model}{what}"));
            entry.drawn(Drawing::To(Party::Model(model.clone())))
        }
        TaskDecision::Nudged { problem, asked, time } => {
            let what = asked_for(*asked);
            let time = if *time > 1 { format!(" (time {time} in a row)") } else { String::new() };
            note("asks again", Ink::Yellow, format!("{what}{time}: {}", text::excerpt(problem)))
        }
        TaskDecision::Accepted { problem, refused } => {
            let refused = totals::count((*refused).into(), "answer");
            let text = format!("the answer as it is, after {refused} that were not taken: {}", text::excerpt(problem));
            note("accepts", Ink::Yellow, text)
        }
        TaskDecision::Fallback { model, because, pruned } => {
            let mut text = format!("to {model}: {}", text::excerpt(because));
            if !pruned.is_empty() {
                text.push_str(&format!("\nhidden from the models: {}", pruned.join(", ")));
            }
            note("fallback", Ink::Yellow, text)
        }
        TaskDecision::Returned { model } => note("return", Ink::Yellow, format!("to {model}")),
        TaskDecision::LastAnswer { code } => {
            note("limit", Ink::Yellow, format!("{code}: stops running calls, then asks for a last answer"))
        }
        TaskDecision::Stopping { calls } => {
            note("stopping", Ink::Yellow, format!("{} still running", totals::count((*calls).into(), "call")))
        }
        TaskDecision::Ended { state, code, message } => {
            let message = message.as_deref().map(|message| format!("; {}", text::excerpt(message))).unwrap_or_default();
            let ink = match state {
                TaskState::Succeeded if *code == TaskCode::AnswerCutOff => Ink::Yellow,
                TaskState::Succeeded => Ink::Green,
                _ => Ink::Red,
            };
            note(state.as_str(), ink, format!("{code}{message}"))
        }
        TaskDecision::Unknown => note("unknown", Ink::Red, UNKNOWN.to_owned()),
        TaskDecision::Message { .. } | TaskDecision::Run { .. } | TaskDecision::Answered { .. } => return None,
    })
}
