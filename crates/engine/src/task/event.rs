//! What can happen to a task.

use redial_proto::{Failure, Finish, Help, Repair, Usage};

#[derive(Clone, Debug)]
pub enum Event {
    /// Its turn has come in its conversation.
    Started {
        input: String,
        /// The sequence number of its first message.
        first_seq: u32,
        /// True if the agent's instructions have to be written.
        system: bool,
        /// What the conversation's earlier tasks left behind: [`super::Task::carried`] of the last one, or null.
        carried: serde_json::Value,
    },
    TurnEnded {
        turn: u32,
        /// Its reply, or why there is none.
        end: Result<Reply, Failure>,
    },
    CallEnded {
        turn: u32,
        /// Its index in that turn, from 1.
        call_index: u32,
        /// Its result as JSON text, or why there is none.
        end: Result<String, Failure>,
    },
    /// An attempt failed and will be retried; nothing to decide.
    Retrying,
    CancelRequested,
    /// The time at which it wanted to be woken has come.
    Woken,
}

/// What a model answered, with each call already resolved against the tools that it was offered.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// What it said.
    pub text: Option<String>,
    /// Its visible reasoning.
    pub thought: Option<String>,
    pub finish: Finish,
    pub problem: Option<String>,
    /// What it cost: what the provider told, and estimates of the rest.
    pub usage: Usage,
    /// What the provider wants back unchanged.
    pub provider: Option<serde_json::Value>,
    /// What it wants to run, in order.
    pub calls: Vec<Proposed>,
}

impl Reply {
    /// Returns whether the end of the reply is missing.
    pub(super) fn is_cut_off(&self) -> bool {
        self.finish == Finish::Length
    }
}

/// A call as a model wrote it, with the verdict of the arguments' pipeline.
#[derive(Clone, Debug)]
pub struct Proposed {
    /// The tool's name as written.
    pub name: String,
    /// The arguments as written.
    pub arguments: String,
    pub verdict: Verdict,
}

/// The verdict of the arguments' pipeline on a call.
#[derive(Clone, Debug)]
pub enum Verdict {
    Run {
        /// The tool's own name.
        tool: String,
        /// Checked arguments: the text of a JSON object.
        arguments: String,
        /// What was changed, without loss.
        repairs: Vec<Repair>,
        /// JSON pointers to properties that the schema does not declare, at most 100: the tool may ignore them.
        undeclared: Vec<String>,
        /// Fingerprint of the tool's spec.
        version: String,
        /// The tool may be called again and again.
        polling: bool,
        /// Calls of one turn to tools like this run one after the other.
        sequential: bool,
    },
    Refused {
        tool: Option<String>,
        /// Fingerprint of the tool's spec; empty if there is no such tool.
        version: String,
        failure: Failure,
        /// What helps the model to correct its arguments.
        help: Option<Box<Help>>,
    },
    /// Redial answers it itself, at once.
    Answered {
        tool: String,
        /// The result as JSON text.
        output: String,
    },
}

impl Proposed {
    /// Returns the tool's own name, or the name as written.
    pub(super) fn tool(&self) -> &str {
        match &self.verdict {
            Verdict::Run { tool, .. } | Verdict::Answered { tool, .. } | Verdict::Refused { tool: Some(tool), .. } => {
                tool
            }
            Verdict::Refused { tool: None, .. } => &self.name,
        }
    }

    /// Returns the arguments that run, or those that were written.
    pub(super) fn final_arguments(&self) -> &str {
        match &self.verdict {
            Verdict::Run { arguments, .. } => arguments,
            _ => &self.arguments,
        }
    }
}
