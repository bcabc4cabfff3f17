//! Plays a recorded task again: what came in goes through the pipeline and the engine of this program, and what they
//! decide is compared with what was decided then. Pure.

use std::{collections::HashMap, fmt};

use redial_engine::task::Task;
use redial_proto::{
    AgentSpec, CallId, CallState, Language, Message, StoredMessage, TaskDecision, TaskId, TaskInput, TaskStep,
};
use redial_store::{EndedCall, audit::CallRecord};
use serde_json::value::RawValue;

use super::{life::Life, resolve::Resolver};
use redial_engine::tools::Tools;

/// A task as it is on record.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// The task.
    pub task: TaskId,
    /// Its agent, as it was pinned.
    pub spec: &'a AgentSpec,
    /// Its language.
    pub language: Language,
    /// What the user wanted.
    pub input: &'a str,
    /// Its steps, in order.
    pub steps: &'a [TaskStep],
    /// The messages of its whole conversation, in order; those of later tasks do no harm.
    pub messages: &'a [StoredMessage],
    /// Its calls that have ended: see [`ended_call`].
    pub calls: &'a [EndedCall],
}

/// Something that comes out otherwise than it is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The step.
    pub step: u32,
    /// What is on record, as JSON; none if nothing is.
    pub recorded: Option<String>,
    /// What came out, as JSON; none if nothing did.
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

/// A call on record as its end came in for its task. `None` if it has not ended, or belongs to no task.
pub fn ended_call(record: &CallRecord) -> Option<EndedCall> {
    let (line, call_index) = (&record.line, record.task?);
    let state = line.state.parse().ok().filter(|state: &CallState| state.is_terminal())?;
    let last = record.attempts_made.last();
    let details = last.filter(|last| last.class == line.class).and_then(|last| last.details.as_ref());
    let output = last.filter(|_| state == CallState::Succeeded).and_then(|last| last.output.as_ref());
    let text = |json: &RawValue| json.get().to_owned();
    Some(EndedCall {
        call: CallId(line.call),
        turn: call_index.turn,
        call_index: call_index.call_index,
        state,
        class: line.class.as_deref().and_then(|class| class.parse().ok()),
        message: line.message.clone(),
        details: record.details.as_ref().or(details).map(|details| text(details)),
        output: output.map(|output| text(output)),
        arguments: (call_index.call_index == 0).then(|| text(&record.arguments)),
    })
}

/// Every difference, in order. None if the task would go the very same way again.
pub fn replay(recorded: &Recorded<'_>) -> Vec<Difference> {
    let first_seq = recorded.steps.iter().find_map(|step| match step.input {
        TaskInput::Started { first_seq, .. } => Some(first_seq),
        _ => None,
    });
    let before = recorded.messages.iter().take_while(|message| first_seq.is_some_and(|first| message.seq < first));
    let mut life = Life {
        id: recorded.task,
        spec: recorded.spec,
        language: recorded.language,
        input: recorded.input,
        task: Task::default(),
        messages: before.cloned().collect(),
    };
    let written: HashMap<u32, &Message> = recorded
        .messages
        .iter()
        .filter(|stored| stored.task == recorded.task)
        .map(|stored| (stored.seq, &stored.message))
        .collect();
    let calls: HashMap<CallId, &EndedCall> = recorded.calls.iter().map(|call| (call.call, call)).collect();
    // Nothing is known now: every offer is compiled as it was.
    let tools = Tools::new();
    let mut resolver = Resolver::new(&tools);
    let mut differences = Vec::new();
    for step in recorded.steps {
        let ended = call_of(&step.input).and_then(|call| calls.get(&call).copied());
        let again = life.feed(&step.input, ended, &mut resolver, step.at);
        compare_decisions(step, &again.decisions, &mut differences);
        for (seq, message) in again.messages {
            compare(step.n, written.get(&seq).copied(), Some(&clean(message)), &mut differences);
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
        compare(step.n, step.decisions.get(n), again.get(n), differences);
    }
}

/// As JSON: that is how the record was written.
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

/// A message as the tables keep it: without U+0000 in its texts.
fn clean(message: Message) -> Message {
    let clean = |text: String| text.replace('\0', "\u{fffd}");
    Message {
        content: clean(message.content),
        thought: message.thought.map(clean),
        tool: message.tool.map(clean),
        ..message
    }
}
