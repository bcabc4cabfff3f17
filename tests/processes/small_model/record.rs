//! The record of a task, as `redial show --json` tells it.

use redial_proto::{CallState, ReplyCall, StoredMessage, TaskStep, TaskView, ToolOffer, TurnReply, TurnRequest};
use redial_store::audit::CallAudit;
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Record {
    #[serde(flatten)]
    pub(crate) task: TaskView,
    pub(crate) steps: Vec<TaskStep>,
    pub(crate) messages: Vec<StoredMessage>,
    pub(crate) calls: Vec<CallAudit>,
}

/// A turn of the model that has an answer.
pub(crate) struct Turn {
    /// From 1.
    pub(crate) number: u32,
    pub(crate) offered: Vec<ToolOffer>,
    pub(crate) reply: TurnReply,
}

/// A call of a tool.
#[derive(Clone, Copy)]
pub(crate) struct ToolCall<'a> {
    pub(crate) turn: u32,
    /// From 1.
    pub(crate) call_index: u32,
    pub(crate) audit: &'a CallAudit,
}

impl Record {
    pub(crate) fn parse(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
    }

    pub(crate) fn turns(&self) -> Vec<Turn> {
        let turns = self.numbered().filter(|call| call.call_index == 0);
        let answered = turns.filter(|call| call.audit.line.state == CallState::Succeeded.as_str());
        answered.map(Turn::of).collect()
    }

    /// Those that the task made, whether or not they were run.
    pub(crate) fn tool_calls(&self) -> Vec<ToolCall<'_>> {
        self.numbered().filter(|call| call.call_index > 0).collect()
    }

    fn numbered(&self) -> impl Iterator<Item = ToolCall<'_>> {
        self.calls.iter().map(|audit| {
            let place = audit.task.as_ref().expect("a call of a task");
            ToolCall { turn: place.turn, call_index: place.call_index, audit }
        })
    }
}

impl Turn {
    fn of(call: ToolCall<'_>) -> Self {
        let request: TurnRequest = serde_json::from_str(call.audit.arguments.get()).unwrap();
        let output = call.audit.attempts_made.last().and_then(|attempt| attempt.output.as_deref());
        let reply = serde_json::from_str(output.expect("an output").get()).unwrap();
        Self { number: call.turn, offered: request.tools, reply }
    }

    /// The call of that index as the model wrote it.
    pub(crate) fn wrote(&self, call_index: u32) -> Option<&ReplyCall> {
        self.reply.calls.get(usize::try_from(call_index).unwrap().checked_sub(1)?)
    }
}
