//! Calls and tasks as `redial show … --json` prints them.

use anyhow::{Context, ensure};
use chrono::{DateTime, Utc};
use redial_proto::{
    CallId, ErrorClass, FieldError, Message, Role, StoredMessage, TaskDecision, TaskInput, TaskState, TaskStep,
    TaskView,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Call {
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) arguments: Value,
    pub(crate) attempts_made: Vec<Attempt>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Attempt {
    worker: String,
    pub(crate) started_at: DateTime<Utc>,
    outcome: String,
    class: Option<String>,
    pub(crate) retry_at: Option<DateTime<Utc>>,
    pub(crate) unheard_since: Option<DateTime<Utc>>,
    output: Option<Value>,
}

impl Call {
    pub(crate) fn has_ended(&self) -> bool {
        !matches!(self.state.as_str(), "ready" | "running" | "retry_wait")
    }

    /// Returns the result of the last attempt; null if there is none.
    pub(crate) fn output(&self) -> Value {
        self.attempts_made.last().and_then(|attempt| attempt.output.clone()).unwrap_or_default()
    }

    /// Checks the outcomes of its attempts: `succeeded`, or the class of the error.
    pub(crate) fn expect(&self, wanted: &[&str]) -> anyhow::Result<()> {
        let outcome = |one: &Attempt| one.class.as_ref().unwrap_or(&one.outcome).clone();
        let outcomes: Vec<String> = self.attempts_made.iter().map(outcome).collect();
        ensure!(outcomes == wanted, "the attempts ended as {outcomes:?}");
        Ok(())
    }
}

impl Attempt {
    /// Returns the name of its worker; an id is a name and a random suffix.
    pub(crate) fn worker(&self) -> &str {
        self.worker.rsplit_once('-').map_or(&self.worker, |(name, _random)| name)
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Task {
    #[serde(flatten)]
    pub(crate) view: TaskView,
    steps: Vec<TaskStep>,
    /// Of the conversation.
    messages: Vec<StoredMessage>,
}

/// The content of a tool message about a failed call.
#[derive(Debug, Deserialize)]
pub(crate) struct Feedback {
    pub(crate) class: ErrorClass,
    #[serde(default)]
    pub(crate) details: Vec<FieldError>,
    #[serde(default)]
    pub(crate) corrections_left: Option<u32>,
    #[serde(default)]
    pub(crate) guidance: String,
}

impl Feedback {
    /// Returns the arguments that broke rules, as JSON pointers.
    pub(crate) fn paths(&self) -> Vec<&str> {
        self.details.iter().map(|detail| detail.path.as_str()).collect()
    }
}

impl Task {
    pub(crate) fn has_ended(&self) -> bool {
        self.view.state.is_terminal()
    }

    pub(crate) fn decisions(&self) -> impl Iterator<Item = &TaskDecision> {
        self.steps.iter().flat_map(|step| &step.decisions)
    }

    /// Returns an ended call by its turn and its index: 0 is the model's turn itself, its tool calls count from 1.
    pub(crate) fn call(&self, wanted: (u32, u32)) -> anyhow::Result<CallId> {
        let ended = self.steps.iter().find_map(|step| match &step.input {
            TaskInput::TurnEnded { turn, call } if (*turn, 0) == wanted => Some(*call),
            TaskInput::CallEnded { turn, call_index, call } if (*turn, *call_index) == wanted => Some(*call),
            _ => None,
        });
        ended.with_context(|| format!("call {} of turn {} has not ended", wanted.1, wanted.0))
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().map(|stored| &stored.message)
    }

    /// Returns the messages with results of tools, and errors.
    pub(crate) fn answers(&self) -> Vec<&Message> {
        self.messages().filter(|message| message.role == Role::Tool).collect()
    }

    pub(crate) fn feedback(&self) -> anyhow::Result<Vec<Feedback>> {
        let failed = self.answers().into_iter().filter(|message| message.class.is_some());
        let feedback = failed.map(|message| serde_json::from_str(&message.content)).collect::<Result<_, _>>();
        feedback.context("the feedback has another form")
    }

    pub(crate) fn results(&self, tool: &str) -> anyhow::Result<Vec<Value>> {
        let of = |message: &&Message| message.class.is_none() && message.tool.as_deref() == Some(tool);
        let results = self.answers().into_iter().filter(of);
        results.map(|message| serde_json::from_str(&message.content).context("a result is not JSON")).collect()
    }

    /// Checks that the task ended with an answer, after so many turns, tool calls and corrections.
    pub(crate) fn expect(&self, wanted: (u32, u32, u32)) -> anyhow::Result<()> {
        let task = &self.view;
        let why = task.message.as_deref().unwrap_or_default();
        ensure!(task.state == TaskState::Succeeded, "the task {} {}: {why}", task.task, task.state);
        let counts = (task.turns, task.tool_calls, task.corrections);
        ensure!(counts == wanted, "turns, tool calls and corrections of {} are {counts:?}, not {wanted:?}", task.task);
        Ok(())
    }
}
