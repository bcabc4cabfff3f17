//! A task as `redial show TASK --json` prints it, and the checks that hold for every model.

use std::collections::{HashSet, VecDeque};

use anyhow::{Context, ensure};
use redial_proto::{
    CallId, ErrorClass, FieldError, Message, Role, StoredMessage, TaskDecision, TaskInput, TaskState, TaskStep,
    TaskView, limits,
};
use serde::Deserialize;
use serde_json::Value;

/// Bytes of an answer in [`Task::summary`].
const MAX_ANSWER: usize = 120;

/// The record of a task.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Task {
    /// The task's state and totals.
    #[serde(flatten)]
    pub(crate) view: TaskView,
    /// The recorded steps, in order.
    pub(crate) steps: Vec<TaskStep>,
    /// The task's part of the conversation.
    pub(crate) messages: Vec<StoredMessage>,
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
    /// The arguments that broke rules, as JSON pointers.
    pub(crate) fn paths(&self) -> Vec<&str> {
        self.details.iter().map(|detail| detail.path.as_str()).collect()
    }
}

impl Task {
    /// True in a terminal state.
    pub(crate) fn has_ended(&self) -> bool {
        self.view.state.is_terminal()
    }

    /// The final answer; empty if there is none.
    pub(crate) fn answer(&self) -> &str {
        self.view.answer.as_deref().unwrap_or_default()
    }

    /// All decisions, in order.
    pub(crate) fn decisions(&self) -> impl Iterator<Item = &TaskDecision> {
        self.steps.iter().flat_map(|step| &step.decisions)
    }

    /// The call of a model's turn that has ended.
    pub(crate) fn turn_call(&self, wanted: u32) -> anyhow::Result<CallId> {
        let ended = self.steps.iter().find_map(|step| match &step.input {
            TaskInput::TurnEnded { turn, call } if *turn == wanted => Some(*call),
            _ => None,
        });
        ended.with_context(|| format!("turn {wanted} has not ended"))
    }

    /// A tool call that has ended, by its turn and its call index.
    pub(crate) fn tool_call(&self, wanted_turn: u32, wanted_index: u32) -> anyhow::Result<CallId> {
        let ended = self.steps.iter().find_map(|step| match &step.input {
            TaskInput::CallEnded { turn, call_index, call } if (*turn, *call_index) == (wanted_turn, wanted_index) => {
                Some(*call)
            }
            _ => None,
        });
        ended.with_context(|| format!("call {wanted_index} of turn {wanted_turn} has not ended"))
    }

    /// The messages of a role.
    pub(crate) fn messages_of(&self, role: Role) -> Vec<&Message> {
        self.messages.iter().map(|stored| &stored.message).filter(|message| message.role == role).collect()
    }

    /// The feedback about failed calls.
    pub(crate) fn feedback(&self) -> anyhow::Result<Vec<Feedback>> {
        let failed = self.messages_of(Role::Tool).into_iter().filter(|message| message.class.is_some());
        let read = |message: &Message| {
            serde_json::from_str(&message.content)
                .with_context(|| format!("the feedback has another form: {message:?}"))
        };
        failed.map(read).collect()
    }

    /// The results of a tool.
    pub(crate) fn results(&self, tool: &str) -> anyhow::Result<Vec<Value>> {
        let of = |message: &&Message| message.class.is_none() && message.tool.as_deref() == Some(tool);
        let results = self.messages_of(Role::Tool).into_iter().filter(of);
        results.map(|message| serde_json::from_str(&message.content).context("a result is not JSON")).collect()
    }

    /// Checks what holds for every task: it has ended, and its conversation is valid.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        ensure!(self.has_ended(), "the task is {}", self.view.state);
        check_conversation(&self.messages)
    }

    /// Checks that the task ended with an answer, after so many turns, tool calls and corrections.
    pub(crate) fn expect(&self, turns: u32, tool_calls: u32, corrections: u32) -> anyhow::Result<()> {
        let task = &self.view;
        let why = task.message.as_deref().unwrap_or_default();
        ensure!(task.state == TaskState::Succeeded, "the task {} {}: {why}", task.task, task.state);
        let counts = (task.turns, task.tool_calls, task.corrections);
        let wanted = (turns, tool_calls, corrections);
        ensure!(counts == wanted, "turns, tool calls and corrections of {} are {counts:?}, not {wanted:?}", task.task);
        Ok(())
    }

    /// What happened, in one line: for real models, whose behaviour is not known in advance.
    pub(crate) fn summary(&self) -> String {
        let call = |message: &Message| {
            let end = message.class.map_or("ok", ErrorClass::as_str);
            format!("{} {end}", message.tool.as_deref().unwrap_or("?"))
        };
        let calls: Vec<String> = self.messages_of(Role::Tool).into_iter().map(call).collect();
        let task = &self.view;
        let code = task.code.map_or("no code", |code| code.as_str());
        let short = |text: &str| {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            limits::shorten(&text, MAX_ANSWER)
        };
        let said = match (self.answer(), task.message.as_deref()) {
            ("", Some(why)) => format!("no answer: {}", short(why)),
            ("", None) => "no answer".to_owned(),
            (answer, _) => format!("answered {:?}", short(answer)),
        };
        let called =
            if calls.is_empty() { "called nothing".to_owned() } else { format!("called {}", calls.join(", ")) };
        format!("{} ({code}), {} turns: {called}; {said}", task.state, task.turns)
    }
}

/// Checks the rules that all providers share: sequence numbers without gaps, and one tool message for each call, in
/// order, directly after the message with the calls.
fn check_conversation(messages: &[StoredMessage]) -> anyhow::Result<()> {
    let mut open: VecDeque<&str> = VecDeque::new();
    let mut ids: HashSet<&str> = HashSet::new();
    for (stored, expected) in messages.iter().zip(messages.first().map_or(1, |first| first.seq)..) {
        let (seq, message) = (stored.seq, &stored.message);
        ensure!(seq == expected, "message {seq} is in the position of {expected}");
        if message.role == Role::Tool {
            let asked = open.pop_front();
            ensure!(asked == message.call_id.as_deref(), "message {seq} answers {:?}, not {asked:?}", message.call_id);
        } else {
            ensure!(open.is_empty(), "message {seq} comes before the answers to {open:?}");
        }
        for call in &message.calls {
            ensure!(message.role == Role::Assistant, "message {seq}: a {} calls tools", message.role);
            ensure!(ids.insert(&call.id), "message {seq} repeats the id {}", call.id);
            open.push_back(&call.id);
        }
    }
    ensure!(open.is_empty(), "{open:?} were not answered");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One tuple for each message: its sequence number, its role, and the ids that it calls or answers.
    fn check(lines: &[(u32, &str, &[&str])]) -> Result<(), String> {
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
    fn invalid_conversations_are_detected() {
        let two: &[_] = &["a", "b"];
        assert_eq!(check(&[]), Ok(()));
        let good = [(5, "user", &[][..]), (6, "assistant", two), (7, "tool", &["a"]), (8, "tool", &["b"])];
        assert_eq!(check(&good), Ok(()));
        let wrong = |lines: &[(u32, &str, &[&str])]| check(lines).unwrap_err();
        assert_eq!(wrong(&[(1, "assistant", two), (2, "tool", &["a"])]), r#"["b"] were not answered"#);
        assert!(wrong(&[(1, "assistant", two), (2, "tool", &["b"])]).contains("answers Some(\"b\"), not Some(\"a\")"));
        assert!(wrong(&[(1, "assistant", two), (2, "user", &[])]).contains("comes before the answers"));
        assert!(wrong(&[(1, "user", &[]), (3, "assistant", &[])]).contains("3 is in the position of 2"));
        assert!(wrong(&[(1, "tool", &["a"])]).contains("not None"));
        assert!(wrong(&[(1, "assistant", &["a", "a"])]).contains("repeats the id"));
        assert!(wrong(&[(1, "user", &["a"])]).contains("a user calls tools"));
    }
}
