//! A task as `redial show TASK --json` prints it, and what must hold for every task, whatever its model does.

use std::collections::{HashSet, VecDeque};

use anyhow::{Context, ensure};
use redial_proto::{
    CallId, ErrorClass, FieldError, Repair, Role, StoredMessage, TaskCode, TaskDecision, TaskInput, TaskState,
    TaskStep, TaskView, limits,
};
use serde::Deserialize;
use serde_json::Value;

/// Bytes of an answer that are shown.
const MOST_OF_AN_ANSWER: usize = 120;

/// The record of a task.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Task {
    /// The task, as every user sees it.
    #[serde(flatten)]
    pub(crate) view: TaskView,
    /// What happened, in order.
    pub(crate) steps: Vec<TaskStep>,
    /// Its part of the conversation.
    pub(crate) messages: Vec<StoredMessage>,
}

/// What a model was told about a call without a result: the content of a tool message.
#[derive(Debug, Deserialize)]
pub(crate) struct Feedback {
    pub(crate) class: ErrorClass,
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) details: Vec<FieldError>,
    #[serde(default)]
    pub(crate) corrections_left: Option<u32>,
    #[serde(default)]
    pub(crate) guidance: String,
}

impl Feedback {
    /// Where rules were broken.
    pub(crate) fn paths(&self) -> Vec<&str> {
        self.details.iter().map(|detail| detail.path.as_str()).collect()
    }
}

impl Task {
    /// True if nothing can happen to it any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.view.state.is_terminal()
    }

    /// What the model answered at last.
    pub(crate) fn answer(&self) -> &str {
        self.view.answer.as_deref().unwrap_or_default()
    }

    /// Everything that was decided, in order.
    pub(crate) fn decisions(&self) -> impl Iterator<Item = &TaskDecision> {
        self.steps.iter().flat_map(|step| &step.decisions)
    }

    /// The call that asked the model for a turn, once it is over.
    pub(crate) fn turn_call(&self, wanted: u32) -> anyhow::Result<CallId> {
        let ended = self.steps.iter().find_map(|step| match &step.input {
            TaskInput::TurnEnded { turn, call } if *turn == wanted => Some(*call),
            _ => None,
        });
        ended.with_context(|| format!("turn {wanted} has no end on record"))
    }

    /// A tool's call by its place, once it is over.
    pub(crate) fn tool_call(&self, wanted: (u32, u32)) -> anyhow::Result<CallId> {
        let ended = self.steps.iter().find_map(|step| match &step.input {
            TaskInput::CallEnded { turn, call_index, call } if (*turn, *call_index) == wanted => Some(*call),
            _ => None,
        });
        ended.with_context(|| format!("call {} of turn {} has no end on record", wanted.1, wanted.0))
    }

    /// What was repaired in the arguments of its calls.
    pub(crate) fn repairs(&self) -> Vec<&Repair> {
        let runs = self.decisions().filter_map(|decision| match decision {
            TaskDecision::Run { repairs, .. } => Some(repairs),
            _ => None,
        });
        runs.flatten().collect()
    }

    /// Its messages by one of the roles.
    pub(crate) fn by(&self, role: Role) -> Vec<&redial_proto::Message> {
        self.messages.iter().map(|stored| &stored.message).filter(|message| message.role == role).collect()
    }

    /// What the model was told about calls without a result.
    pub(crate) fn feedback(&self) -> anyhow::Result<Vec<Feedback>> {
        let failed = self.by(Role::Tool).into_iter().filter(|message| message.class.is_some());
        let read = |message: &redial_proto::Message| {
            serde_json::from_str(&message.content).with_context(|| format!("feedback in another form: {message:?}"))
        };
        failed.map(read).collect()
    }

    /// The results that a tool gave.
    pub(crate) fn results(&self, tool: &str) -> anyhow::Result<Vec<Value>> {
        let of = |message: &&redial_proto::Message| message.class.is_none() && message.tool.as_deref() == Some(tool);
        let results = self.by(Role::Tool).into_iter().filter(of);
        results.map(|message| serde_json::from_str(&message.content).context("a result is no JSON")).collect()
    }

    /// What must hold for every task: it ended, its model could be asked, and its conversation is valid.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        ensure!(self.has_ended(), "the task is {}", self.view.state);
        let why = self.view.message.as_deref().unwrap_or_default();
        ensure!(self.view.code != Some(TaskCode::ModelFailed), "task {}: {why}", self.view.task);
        check_conversation(&self.messages)
    }

    /// An error unless it ended with an answer, after so many turns, tool calls and corrections.
    pub(crate) fn expect(&self, turns: u32, tool_calls: u32, corrections: u32) -> anyhow::Result<()> {
        let task = &self.view;
        let why = task.message.as_deref().unwrap_or_default();
        ensure!(task.state == TaskState::Succeeded, "the task {} {}: {why}", task.task, task.state);
        let counts = (task.turns, task.tool_calls, task.corrections);
        let wanted = (turns, tool_calls, corrections);
        ensure!(counts == wanted, "turns, tool calls and corrections of {}: {counts:?}, not {wanted:?}", task.task);
        Ok(())
    }

    /// What happened, in a line: for models of which nobody knows what they will do.
    pub(crate) fn told(&self) -> String {
        let call = |message: &redial_proto::Message| {
            let end = message.class.map_or("ok", ErrorClass::as_str);
            format!("{} {end}", message.tool.as_deref().unwrap_or("?"))
        };
        let calls: Vec<String> = self.by(Role::Tool).into_iter().map(call).collect();
        let task = &self.view;
        let code = task.code.map_or("no code", |code| code.as_str());
        let answer = self.answer().split_whitespace().collect::<Vec<_>>().join(" ");
        let answer = limits::shorten(&answer, MOST_OF_AN_ANSWER);
        format!("{} ({code}), {} turns: [{}] {answer:?}", task.state, task.turns, calls.join(", "))
    }
}

/// The rules of every provider: no gap, each call answered once, in order, directly after the message that asked.
fn check_conversation(messages: &[StoredMessage]) -> anyhow::Result<()> {
    let mut open: VecDeque<&str> = VecDeque::new();
    let mut ids: HashSet<&str> = HashSet::new();
    for (stored, place) in messages.iter().zip(messages.first().map_or(1, |first| first.seq)..) {
        let (seq, message) = (stored.seq, &stored.message);
        ensure!(seq == place, "message {seq} stands where {place} should");
        if message.role == Role::Tool {
            let asked = open.pop_front();
            ensure!(asked == message.call_id.as_deref(), "message {seq} answers {:?}, not {asked:?}", message.call_id);
        } else {
            ensure!(open.is_empty(), "message {seq} comes before the answers to {open:?}");
        }
        for call in &message.calls {
            ensure!(message.role == Role::Assistant, "message {seq}: a {} calls tools", message.role);
            ensure!(ids.insert(&call.id), "message {seq}: the id {} was there before", call.id);
            open.push_back(&call.id);
        }
    }
    ensure!(open.is_empty(), "{open:?} were never answered");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line a message: its place, its role, and the ids that it asks for or answers.
    fn checked(lines: &[(u32, &str, &[&str])]) -> Result<(), String> {
        let message = |(seq, role, ids): &(u32, &str, &[&str])| -> StoredMessage {
            let calls: Vec<Value> = ids
                .iter()
                .filter(|_| *role != "tool")
                .map(|id| serde_json::json!({"id": id, "tool": "t", "arguments": "{}"}))
                .collect();
            let call_id = ids.first().filter(|_| *role == "tool");
            serde_json::from_value(serde_json::json!({
                "seq": seq, "task": "01936b1c-0000-7000-8000-000000000003", "at": "2026-11-20T08:00:00Z", "role": role,
                "calls": calls, "call_id": call_id,
            }))
            .unwrap()
        };
        let messages: Vec<StoredMessage> = lines.iter().map(message).collect();
        check_conversation(&messages).map_err(|error| error.to_string())
    }

    #[test]
    fn a_conversation_is_valid_or_not() {
        let two: &[_] = &["a", "b"];
        assert_eq!(checked(&[]), Ok(()));
        let good = [(5, "user", &[][..]), (6, "assistant", two), (7, "tool", &["a"]), (8, "tool", &["b"])];
        assert_eq!(checked(&good), Ok(()));
        let wrong = |lines: &[(u32, &str, &[&str])]| checked(lines).unwrap_err();
        assert_eq!(wrong(&[(1, "assistant", two), (2, "tool", &["a"])]), r#"["b"] were never answered"#);
        assert!(wrong(&[(1, "assistant", two), (2, "tool", &["b"])]).contains("answers Some(\"b\"), not Some(\"a\")"));
        assert!(wrong(&[(1, "assistant", two), (2, "user", &[])]).contains("comes before the answers"));
        assert!(wrong(&[(1, "user", &[]), (3, "assistant", &[])]).contains("3 stands where 2 should"));
        assert!(wrong(&[(1, "tool", &["a"])]).contains("not None"));
        assert!(wrong(&[(1, "assistant", &["a", "a"])]).contains("was there before"));
        assert!(wrong(&[(1, "user", &["a"])]).contains("a user calls tools"));
    }
}
