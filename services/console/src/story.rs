//! What happened in a task, as its record tells: turns, the calls that they asked for, and changes of course.

pub(crate) mod chains;
mod course;
pub(crate) mod lanes;
pub(crate) mod verdict;
pub(crate) mod why;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use redial_proto::{
    CallId, ErrorClass, FieldError, Message, Repair, Role, StoredMessage, TaskDecision, TaskInput, TaskReport,
    TaskStep, TaskView,
};
use serde::Deserialize;
use serde_json::Value;

pub(crate) struct Story {
    pub(crate) task: TaskView,
    /// By number.
    pub(crate) turns: BTreeMap<u32, Turn>,
    /// By turn and number within it.
    pub(crate) calls: BTreeMap<(u32, u32), Asked>,
    /// What else happened, in order.
    pub(crate) notes: Vec<Note>,
    /// Every message that the steps wrote, in order.
    pub(crate) messages: Vec<StoredMessage>,
    pub(crate) steps: u32,
}

#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) model: String,
    pub(crate) asked_at: DateTime<Utc>,
    pub(crate) ended_at: Option<DateTime<Utc>>,
    /// Without tools, because a limit is reached.
    pub(crate) last: bool,
    /// For the rest of an answer that was cut off.
    pub(crate) continues: bool,
    pub(crate) text: Option<String>,
    pub(crate) asked: usize,
    /// Why its answer was not taken.
    pub(crate) nudged: Option<String>,
    pub(crate) retries: Vec<Retry>,
    pub(crate) call: Option<CallId>,
}

#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) tool: String,
    /// The arguments as the model wrote them.
    pub(crate) sent: Option<String>,
    pub(crate) at: DateTime<Utc>,
    pub(crate) repairs: Vec<Repair>,
    pub(crate) client: bool,
    pub(crate) answer: Option<Answer>,
    pub(crate) retries: Vec<Retry>,
    pub(crate) call: Option<CallId>,
}

/// What the model got for a call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) at: DateTime<Utc>,
    /// False if it was answered without running anything.
    pub(crate) ran: bool,
    pub(crate) class: Option<ErrorClass>,
    pub(crate) message: Option<String>,
    pub(crate) corrections_left: Option<u32>,
    /// The broken rules that the feedback names.
    pub(crate) details: Vec<FieldError>,
    pub(crate) content: String,
}

/// An attempt that failed and was repeated.
#[derive(Clone, Debug)]
pub(crate) struct Retry {
    pub(crate) class: ErrorClass,
    pub(crate) message: String,
    pub(crate) at: DateTime<Utc>,
    pub(crate) next_at: DateTime<Utc>,
}

#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) step: u32,
    pub(crate) at: DateTime<Utc>,
    /// One word.
    pub(crate) what: &'static str,
    pub(crate) text: String,
}

/// The part of a feedback that names rules. A user's template may have another form.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Feedback {
    details: Vec<FieldError>,
}

impl Story {
    /// Tells the pages of a report, in order.
    pub(crate) fn new(reports: Vec<TaskReport>) -> Option<Self> {
        let mut reports = reports.into_iter();
        let first = reports.next()?;
        let TaskReport { mut task, mut steps, mut messages, .. } = first;
        for report in reports {
            task = report.task;
            steps.extend(report.steps);
            messages.extend(report.messages);
        }
        messages.sort_by_key(|message| message.seq);
        messages.dedup_by_key(|message| message.seq);
        let last = steps.last().map_or(0, |step| step.step);
        let mut story =
            Self { task, turns: BTreeMap::new(), calls: BTreeMap::new(), notes: Vec::new(), messages, steps: last };
        for step in &steps {
            story.input(step);
            for decision in &step.decisions {
                story.decision(step, decision);
            }
        }
        Some(story)
    }

    /// Returns the first turn that these steps are about.
    pub(crate) fn first_turn(&self) -> u32 {
        let turn = self.turns.keys().next().copied();
        let call = self.calls.keys().next().map(|(turn, _)| *turn);
        turn.into_iter().chain(call).min().unwrap_or(0)
    }

    fn input(&mut self, step: &TaskStep) {
        match &step.input {
            TaskInput::TurnEnded { turn, call } => {
                let written = step.decisions.iter().find_map(|decision| match decision {
                    TaskDecision::Message { seq } => {
                        self.message(*seq).filter(|message| message.role == Role::Assistant)
                    }
                    _ => None,
                });
                let (text, asked) = written.map_or((None, 0), |message| {
                    (Some(message.content.clone()).filter(|text| !text.trim().is_empty()), message.calls.len())
                });
                if let Some(turn) = self.turns.get_mut(turn) {
                    (turn.ended_at, turn.text, turn.asked, turn.call) = (Some(step.at), text, asked, Some(*call));
                }
            }
            TaskInput::CallEnded { turn, call_index, call } => {
                if let Some(asked) = self.calls.get_mut(&(*turn, *call_index)) {
                    asked.call = Some(*call);
                }
            }
            TaskInput::Retrying { turn, call_index, class, message, next_at, call, .. } => {
                let retry = Retry { class: *class, message: message.clone(), at: step.at, next_at: *next_at };
                if *call_index == 0 {
                    if let Some(turn) = self.turns.get_mut(turn) {
                        turn.retries.push(retry);
                        turn.call = Some(*call);
                    }
                } else if let Some(asked) = self.calls.get_mut(&(*turn, *call_index)) {
                    asked.retries.push(retry);
                    asked.call = Some(*call);
                }
            }
            TaskInput::CancelRequested => self.note(step, "cancel", "A user asked to stop the task."),
            TaskInput::Unknown => {
                self.note(step, "unknown", "A newer version of Redial recorded something that this one does not know.");
            }
            TaskInput::Started { .. } | TaskInput::Woken => {}
        }
    }

    fn decision(&mut self, step: &TaskStep, decision: &TaskDecision) {
        match decision {
            TaskDecision::Turn { turn, model, last, continues } => {
                let turn_ = Turn {
                    model: model.clone(),
                    asked_at: step.at,
                    ended_at: None,
                    last: *last,
                    continues: *continues,
                    text: None,
                    asked: 0,
                    nudged: None,
                    retries: Vec::new(),
                    call: None,
                };
                self.turns.insert(*turn, turn_);
            }
            TaskDecision::Run { turn, call_index, id, tool, repairs, client } => {
                let mut asked = self.asked(step, id, tool);
                (asked.repairs, asked.client) = (repairs.clone(), *client);
                self.calls.insert((*turn, *call_index), asked);
            }
            TaskDecision::Answered { turn, call_index, id, tool, ran, class, message, corrections_left } => {
                let content = self.result(id).map(|message| message.content.clone()).unwrap_or_default();
                let details = if class.is_some() { details(&content) } else { Vec::new() };
                let answer = Answer {
                    at: step.at,
                    ran: *ran,
                    class: *class,
                    message: message.clone(),
                    corrections_left: *corrections_left,
                    details,
                    content,
                };
                let asked = self.asked(step, id, tool);
                self.calls.entry((*turn, *call_index)).or_insert(asked).answer = Some(answer);
            }
            TaskDecision::Message { .. } => {}
            TaskDecision::Nudged { problem, .. } => {
                if let TaskInput::TurnEnded { turn, .. } = &step.input
                    && let Some(turn) = self.turns.get_mut(turn)
                {
                    turn.nudged = Some(problem.clone());
                }
                self.note(step, "asked again", format!("The answer was not taken: {problem}"));
            }
            other => {
                if let Some((what, text)) = course::course(other) {
                    self.note(step, what, text);
                }
            }
        }
    }

    fn asked(&self, step: &TaskStep, id: &str, tool: &str) -> Asked {
        let calls = self.messages.iter().flat_map(|message| message.message.calls.iter());
        let sent = calls.rev().find(|call| call.id == id).map(|call| call.arguments.clone());
        let tool = tool.to_owned();
        let (repairs, retries) = (Vec::new(), Vec::new());
        Asked { tool, sent, at: step.at, repairs, client: false, answer: None, retries, call: None }
    }

    fn note(&mut self, step: &TaskStep, what: &'static str, text: impl Into<String>) {
        self.notes.push(Note { step: step.step, at: step.at, what, text: text.into() });
    }

    fn message(&self, seq: u32) -> Option<&Message> {
        let at = self.messages.binary_search_by_key(&seq, |message| message.seq).ok()?;
        Some(&self.messages[at].message)
    }

    fn result(&self, id: &str) -> Option<&Message> {
        self.messages.iter().map(|stored| &stored.message).find(|message| message.call_id.as_deref() == Some(id))
    }

    /// Returns when the last thing happened that is on record.
    pub(crate) fn end(&self) -> Option<DateTime<Utc>> {
        self.task.finished_at
    }
}

fn details(content: &str) -> Vec<FieldError> {
    serde_json::from_str::<Value>(content)
        .ok()
        .and_then(|value| serde_json::from_value::<Feedback>(value).ok())
        .unwrap_or_default()
        .details
}
