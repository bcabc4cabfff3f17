//! Tasks: their calls, what a model saw, and their decisions repeated.

use chrono::{DateTime, Utc};
use redial_proto::{
    AgentSpec, AttemptView, CallId, CallState, ErrorClass, FieldError, Language, Message, Repair, TaskId, TaskView,
    ToolEffect, Trimmed, TurnReply, Waiting, names,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::Ran;

/// A part of the tasks.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskList {
    /// Newest first.
    pub tasks: Vec<TaskView>,
    /// For the next page; empty at the end. A page may have few tasks, or none, and a next one: then the search looked at as many
    /// tasks as one request may.
    pub next_page_token: String,
    /// How far this request looked.
    pub searched: SearchedTasks,
}

crate::parts!(TaskList, tasks: TaskView);

/// How far a search looked.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SearchedTasks {
    /// Tasks of the tenant that this request looked at.
    pub tasks: u64,
    /// When the last one of them was submitted.
    pub back_to: Option<DateTime<Utc>>,
    /// No task is left: `next_page_token` is empty.
    pub complete: bool,
}

list! {
    /// A part of the calls of a task.
    TaskCallList {
        /// By turn and number.
        calls: TaskCallItem
    }
}

/// A call of a task with its attempts; `GET /v1/calls/{id}` has everything.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskCallItem {
    /// Its id. Tools of effect `keyed` get it as their idempotency key, the same in each attempt.
    pub call: CallId,
    /// The turn that asked for it.
    pub turn: u32,
    /// Its number within the turn, from 1; 0 is the turn itself.
    pub call_index: u32,
    /// The tool; of a turn `model-NAME`.
    pub tool: String,
    /// Its state.
    #[serde(deserialize_with = "names::shown")]
    pub state: CallState,
    /// Why it ended without success.
    #[serde(default, deserialize_with = "names::known", skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What the tool does to the world.
    pub effect: ToolEffect,
    /// The pool whose workers run it.
    pub pool: String,
    /// How often the tool ran.
    pub ran: Ran,
    /// When it was accepted.
    pub submitted_at: DateTime<Utc>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
    /// When the next attempt starts, as far as that can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// No attempt starts later.
    pub deadline_at: DateTime<Utc>,
    /// Until when the worker that runs it holds it without a heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<DateTime<Utc>>,
    /// What it waits for. Only of the first 20 open calls of a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waiting>,
    /// As the tool gets them; absent for a turn, and if they have over 16 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub arguments: Option<Box<RawValue>>,
    /// Bytes of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_bytes: Option<u32>,
    /// The arguments as the model wrote them, cut with a mark at 16 KiB, if they were changed before they ran; absent if its answer has
    /// over 256 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    /// Lossless changes that were made before it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<Repair>,
    /// The rules that its arguments break.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<FieldError>,
    /// JSON pointers to properties that the tool's schema does not declare.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undeclared: Vec<String>,
    /// The ended call that it runs again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redrive_of: Option<CallId>,
    /// The call that runs it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redriven_as: Option<CallId>,
    /// Attempts that were started.
    pub attempts: u32,
    /// Its last 20 attempts, oldest first, the running one included; of each message the first 500 characters.
    pub attempts_made: Vec<AttemptView>,
}

/// By which settings a task is decided.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskSpec {
    /// Language of Redial's texts to the model.
    pub language: Language,
    /// The agent: its model, tools, limits and policy.
    pub spec: AgentSpec,
}

/// What a model saw in a turn, and what it answered.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnView {
    /// The turn, from 1.
    pub turn: u32,
    /// The call that asked the model.
    pub call: CallId,
    /// The model, by its name in `models.toml`.
    pub model: String,
    /// The state of that call.
    #[serde(deserialize_with = "names::shown")]
    pub state: CallState,
    /// When the model was asked.
    pub submitted_at: DateTime<Utc>,
    /// When it had answered.
    pub finished_at: Option<DateTime<Utc>>,
    /// The messages as the model got them, in order. Texts are cut at 64 KiB, with a mark; of over 400 messages the first and the
    /// last 200 are here.
    pub messages: Vec<Message>,
    /// Messages that are left out here, between the first and the last ones.
    pub not_shown: u32,
    /// The tools that it was offered.
    pub tools: Vec<String>,
    /// What was left out of the conversation for the model, and the estimated size of what it got.
    pub trimmed: Trimmed,
    /// What it answered, its texts cut alike; absent before that, and if it could not be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<TurnReply>,
}

/// What came of deciding a task again.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    /// The task.
    pub task: TaskId,
    /// Steps on record.
    pub steps: usize,
    /// Decisions on record.
    pub decisions: usize,
    /// Each decision was made as it is on record.
    pub identical: bool,
    /// The number of decisions that were made otherwise.
    pub difference_count: usize,
    /// The first 20 of them, in order.
    pub differences: Vec<ReplayDifference>,
}

/// A decision that was made otherwise.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReplayDifference {
    /// The step.
    pub step: u32,
    /// What is on record; `null` if nothing is.
    pub recorded: Option<Value>,
    /// What was decided now; `null` if nothing was.
    pub replayed: Option<Value>,
}
