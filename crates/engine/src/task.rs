//! The state machine of a task: model turn → calls → results → next turn, until there is an answer.
//!
//! [`step`] takes a task and an event, changes the task, and says what has to be done. Nothing here knows ids of calls:
//! a call of a task is known by its turn and its call_index in that turn (0 is the model itself, tool calls count from 1).

mod answers;
mod asking;
mod calls;
mod chains;
mod machine;
mod memory;
mod state;

use redial_proto::{
    AgentSpec, ErrorClass, FieldError, Finish, Language, Message, Repair, TaskCode, TaskDecision, TaskState, Usage,
};

pub use self::{memory::canonical_key, state::Task};

use crate::Time;

/// Lets something happen to a task: changes it, and says what has to be done.
///
/// An event that does not fit is late or a duplicate: it changes nothing. Whatever happens and in whatever order, every
/// call of a reply gets exactly one tool message, at the place that was reserved for it.
pub fn step(task: &mut Task, agent: &AgentSpec, language: Language, event: Event, now: Time) -> Step {
    machine::Machine::new(task, agent, language, now).take(event)
}

/// What can happen to a task.
#[derive(Clone, Debug)]
pub enum Event {
    /// Its turn has come in its conversation.
    Started {
        /// The user's text.
        input: String,
        /// The place of its first message.
        first_seq: u32,
        /// True if the agent's instructions have to be written.
        system: bool,
        /// What the conversation's earlier tasks left behind: [`Task::carried`] of the last one, or null.
        carried: serde_json::Value,
    },
    /// A model's turn is over.
    TurnEnded {
        /// The turn.
        turn: u32,
        /// How.
        end: Result<Reply, CallFailure>,
    },
    /// A tool's call is over.
    CallEnded {
        /// The turn that asked for it.
        turn: u32,
        /// Its place in that turn, from 1.
        call_index: u32,
        /// Its result as JSON text, or why there is none.
        end: Result<String, CallFailure>,
    },
    /// An attempt failed and will be repeated; nothing to decide.
    Retrying,
    /// The user wants it stopped.
    CancelRequested,
    /// Its time has come.
    Woken,
}

/// What a model answered, with each call already resolved against the tools that it was offered.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// What it said.
    pub text: Option<String>,
    /// What it thought aloud.
    pub thought: Option<String>,
    /// Why it stopped.
    pub finish: Finish,
    /// What is wrong with the form of the answer.
    pub problem: Option<String>,
    /// What it cost.
    pub usage: Usage,
    /// What the provider wants back unchanged.
    pub provider: Option<serde_json::Value>,
    /// What it wants to run, in order.
    pub calls: Vec<Proposed>,
}

/// A call as a model wrote it, and what the arguments' pipeline says to it.
#[derive(Clone, Debug)]
pub struct Proposed {
    /// The tool's name as written.
    pub name: String,
    /// The arguments as written.
    pub arguments: String,
    /// What would become of it.
    pub verdict: Verdict,
}

/// What the arguments' pipeline says to a call.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It may run.
    Run {
        /// The tool's own name.
        tool: String,
        /// Checked arguments: the text of a JSON object.
        arguments: String,
        /// What was changed, without loss.
        repairs: Vec<Repair>,
        /// Fingerprint of the tool's spec.
        version: String,
        /// The tool may be called again and again.
        polling: bool,
        /// Calls of one turn to tools like this run one after the other.
        sequential: bool,
    },
    /// It must not run.
    Refused {
        /// The tool's own name, if it is known.
        tool: Option<String>,
        /// Fingerprint of the tool's spec; empty if there is no such tool.
        version: String,
        /// Why.
        failure: CallFailure,
    },
    /// It is answered at once, by Redial itself.
    Answered {
        /// The tool's own name.
        tool: String,
        /// The result as JSON text.
        output: String,
    },
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq)]
pub struct CallFailure {
    /// The class.
    pub class: ErrorClass,
    /// In words.
    pub message: String,
    /// Broken rules.
    pub details: Vec<FieldError>,
    /// True if an unsafe tool may or may not have done its work.
    pub unknown: bool,
}

/// What has to be done, in one transaction; then the jobs are published.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// For the record, and for people.
    pub decisions: Vec<TaskDecision>,
    /// Messages to write, each at its place in the conversation.
    pub messages: Vec<(u32, Message)>,
    /// Calls to write: those that run, and those that were refused.
    pub calls: Vec<NewCall>,
    /// A model to ask.
    pub turn: Option<NewTurn>,
    /// Calls to stop, by turn and call_index.
    pub cancel: Vec<(u32, u32)>,
    /// The end.
    pub ended: Option<Ended>,
    /// When to send [`Event::Woken`]; none once it is over.
    pub wake_at: Option<Time>,
}

/// A tool call to write.
#[derive(Clone, Debug, PartialEq)]
pub struct NewCall {
    /// The turn.
    pub turn: u32,
    /// Its place in the turn, from 1.
    pub call_index: u32,
    /// The tool's own name, or the name as written if there is no such tool.
    pub tool: String,
    /// Checked arguments, or what was written if it was refused.
    pub arguments: String,
    /// What was changed, without loss.
    pub repairs: Vec<Repair>,
    /// Why it does not run; it is on record only.
    pub refusal: Option<CallFailure>,
}

/// A turn to ask a model for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTurn {
    /// The turn, from 1.
    pub turn: u32,
    /// The model, by its name in `models.toml`.
    pub model: String,
    /// False for the last answer: the model gets no tools.
    pub tools: bool,
}

/// The end of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// A terminal state.
    pub state: TaskState,
    /// Why.
    pub code: TaskCode,
    /// The same in words, unless it succeeded.
    pub message: Option<String>,
    /// What the model answered at last.
    pub answer: Option<String>,
}
