//! Replays a recorded task: its inputs go through the same state machine as when it was planned, and the decisions are
//! compared with those on record.

use std::{collections::HashMap, fmt};

use redial_proto::{AgentSpec, CallId, Language, Message, StoredMessage, TaskDecision, TaskId, TaskInput, TaskStep};
use redial_records::EndedCall;
use uuid::Uuid;

use super::{
    inputs::{Conversation, PendingInput, Resolver, TaskRun},
    state::Task,
};
use crate::tools::Tools;

#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    pub task: TaskId,
    /// Its agent, as it was pinned.
    pub spec: &'a AgentSpec,
    pub language: Language,
    pub input: &'a str,
    pub steps: &'a [TaskStep],
    /// The messages of its whole conversation, in order; those of later tasks do no harm.
    pub messages: &'a [StoredMessage],
    /// Its calls that have ended.
    pub calls: &'a [EndedCall],
}

/// Something that the replay decides otherwise than it is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub step: u32,
    /// What is on record, as JSON; `None` if nothing is.
    pub recorded: Option<String>,
    /// What the replay decided, as JSON; `None` if nothing.
    pub replayed: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nothing = "nothing";
        let (recorded, replayed) = (self.recorded.as_deref(), self.replayed.as_deref());
        let (recorded, replayed) = (recorded.unwrap_or(nothing), replayed.unwrap_or(nothing));
        write!(f, "step {}: on record is {recorded}; replayed: {replayed}", self.step)
    }
}

/// Returns every difference, in order; empty if the task would go exactly the same way again.
pub fn replay(recorded: &Recorded<'_>) -> Vec<Difference> {
    let first_seq = recorded.steps.iter().find_map(|step| match step.input {
        TaskInput::Started { first_seq, .. } => Some(first_seq),
        _ => None,
    });
    let before = recorded.messages.iter().take_while(|message| first_seq.is_some_and(|first| message.seq < first));
    let mut run = TaskRun {
        id: recorded.task,
        agent: recorded.spec.clone(),
        language: recorded.language,
        input: recorded.input.to_owned(),
        task: Task::default(),
        conversation: Conversation::whole(before.cloned().collect()),
    };
    let written: HashMap<u32, &Message> = recorded
        .messages
        .iter()
        .filter(|stored| stored.task == recorded.task)
        .map(|stored| (stored.seq, &stored.message))
        .collect();
    let calls: HashMap<CallId, &EndedCall> = recorded.calls.iter().map(|call| (call.call, call)).collect();
    // No tool is known: every offer is compiled as it was.
    let tools = Tools::new();
    let mut resolver = Resolver::new(&tools);
    let mut differences = Vec::new();
    for step in recorded.steps {
        let ended = call_of(&step.input).and_then(|call| calls.get(&call).copied().cloned());
        let pending = PendingInput { input: step.input.clone(), ended };
        // Decisions and messages do not hold the ids of calls, so any will do. The conversation is complete, so that no
        // result is missing.
        let replayed = run.apply(&pending, &mut resolver, step.at, &mut || CallId(Uuid::nil()));
        let again = replayed.unwrap_or_default();
        compare_decisions(step, &again.decisions, &mut differences);
        for (seq, message) in again.messages {
            compare(step.step, written.get(&seq).copied(), Some(&clean(message)), &mut differences);
        }
    }
    differences
}

fn call_of(input: &TaskInput) -> Option<CallId> {
    match input {
        TaskInput::TurnEnded { call, .. } | TaskInput::CallEnded { call, .. } => Some(*call),
        _ => None,
    }
}

fn compare_decisions(step: &TaskStep, again: &[TaskDecision], differences: &mut Vec<Difference>) {
    for n in 0..step.decisions.len().max(again.len()) {
        compare(step.step, step.decisions.get(n), again.get(n), differences);
    }
}

/// Compares as JSON: that is how the record was written.
fn compare<T: serde::Serialize>(
    step: u32,
    recorded: Option<&T>,
    replayed: Option<&T>,
    differences: &mut Vec<Difference>,
) {
    let json = |value: Option<&T>| value.and_then(|value| serde_json::to_string(value).ok());
    let (recorded, replayed) = (json(recorded), json(replayed));
    if recorded != replayed {
        differences.push(Difference { step, recorded, replayed });
    }
}

/// Returns a message as the tables keep it: without U+0000 in its texts.
fn clean(message: Message) -> Message {
    let clean = |text: String| text.replace('\0', "\u{fffd}");
    Message {
        content: clean(message.content),
        thought: message.thought.map(clean),
        tool: message.tool.map(clean),
        ..message
    }
}
