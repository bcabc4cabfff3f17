//! What a task and its conversation have on record, and the rules that every step keeps. They come from the documentation:
//! this module knows only events and steps.

use std::collections::{BTreeMap, HashMap, HashSet};

use redial_engine::task::{Event, Step, Task};
use redial_proto::{AgentSpec, CallId, Message, Role, TaskCode, TaskDecision, TaskState, Usage};

#[derive(Default)]
pub(super) struct Record {
    /// By sequence number, from 1.
    pub(super) messages: BTreeMap<u32, Message>,
    /// Turn and index of every call.
    pub(super) calls: HashMap<CallId, (u32, u32)>,
    pub(super) turn: u32,
    pub(super) ended: Option<TaskState>,
    /// Sequence numbers of the answers of calls, with the ids of the calls.
    reserved: BTreeMap<u32, String>,
    ids: HashSet<String>,
    /// The model of the last turn is being asked.
    asked: bool,
    /// The tools of calls that run, by call index.
    running: BTreeMap<u32, String>,
    started: HashSet<(u32, u32)>,
    runs: u32,
    cancelled: bool,
    usage: Usage,
}

impl Record {
    /// Begins the record of the conversation's next task.
    pub(super) fn next_task(&mut self) {
        let (messages, ids) = (std::mem::take(&mut self.messages), std::mem::take(&mut self.ids));
        *self = Self { messages, ids, ..Self::default() };
    }

    /// Takes note of an event, before the engine decides about it.
    pub(super) fn happens(&mut self, event: &Event) {
        match event {
            Event::TurnEnded { turn, end } if self.asked && *turn == self.turn && self.ended.is_none() => {
                self.asked = false;
                if let Ok(reply) = end {
                    self.usage.add(&reply.usage);
                }
            }
            Event::CallEnded { turn, call_index, .. } if *turn == self.turn => drop(self.running.remove(call_index)),
            Event::CancelRequested => self.cancelled = true,
            _ => {}
        }
    }

    /// Writes a step down; panics if it breaks a rule.
    pub(super) fn write(&mut self, step: &Step, task: &Task, agent: &AgentSpec) {
        if self.ended.is_some() {
            return assert_eq!(*step, Step::default(), "something happened after the end");
        }
        self.write_messages(step);
        self.write_calls(step, agent);
        for stopped in &step.cancel {
            let (turn, index) = self.calls[stopped];
            assert!(if index == 0 { self.asked && turn == self.turn } else { self.running.contains_key(&index) });
        }
        self.write_turn(step, task, agent);
        self.write_end(step, task);
        decisions_say(step);
        assert_eq!(task.usage(), self.usage);
        assert!(task.tool_calls() >= self.runs && (task.tool_calls() == self.runs || !self.running.is_empty()));
        let goes_on = self.ended.is_none();
        assert_eq!(step.wake_at.is_some(), goes_on);
        assert_eq!(self.asked || !self.running.is_empty(), goes_on, "a task that goes on waits for something");
    }

    fn write_messages(&mut self, step: &Step) {
        for (seq, message) in &step.messages {
            let reserved = self.reserved.remove(seq);
            assert_eq!(message.call_id, reserved, "message {seq}");
            assert_eq!(message.role == Role::Tool, reserved.is_some(), "message {seq}");
            for (n, call) in (1..).zip(&message.calls) {
                assert!(self.ids.insert(call.id.clone()), "id {} is used twice", call.id);
                self.reserved.insert(seq + n, call.id.clone());
            }
            assert!(self.messages.insert(*seq, message.clone()).is_none(), "two messages at {seq}");
        }
    }

    fn write_calls(&mut self, step: &Step, agent: &AgentSpec) {
        for call in &step.calls {
            let id = (call.turn, call.call_index);
            assert_eq!(call.turn, self.turn);
            assert!(self.started.insert(id) && self.calls.insert(call.id, id).is_none(), "{id:?} is written twice");
            if call.refusal.is_some() {
                continue;
            }
            assert!(!self.cancelled && step.ended.is_none(), "{id:?} runs after a cancel or at the end");
            let is_sequential = |tool: &str| tool.starts_with("move");
            let other = self.running.values().any(|running| is_sequential(running));
            assert!(!(is_sequential(&call.tool) && other), "{id:?} does not wait for the call before it");
            self.running.insert(call.call_index, call.tool.clone());
            self.runs += 1;
            assert!(self.runs <= agent.budgets.tool_calls, "too many calls");
        }
    }

    fn write_turn(&mut self, step: &Step, task: &Task, agent: &AgentSpec) {
        let Some(turn) = &step.turn else { return };
        assert!(turn.model == agent.model || Some(&turn.model) == agent.fallback_model.as_ref(), "{turn:?}");
        assert!(!turn.tools || task.turns() <= agent.budgets.turns, "turn {} with tools", task.turns());
        assert!(!self.asked && self.running.is_empty() && !self.cancelled, "{turn:?} is too early, or too late");
        assert_eq!(turn.turn, self.turn + 1);
        assert!(self.calls.insert(turn.id, (turn.turn, 0)).is_none());
        (self.asked, self.turn) = (true, turn.turn);
        self.is_whole();
    }

    fn write_end(&mut self, step: &Step, task: &Task) {
        let Some(end) = &step.ended else { return };
        assert!(step.turn.is_none() && !self.asked && self.running.is_empty(), "it ends too early");
        let state = match end.code {
            TaskCode::Answered | TaskCode::AnswerCutOff => TaskState::Succeeded,
            TaskCode::Cancelled => TaskState::Cancelled,
            _ => TaskState::Failed,
        };
        assert_eq!((end.state, task.state()), (state, state), "{}", end.code);
        assert_eq!(end.message.is_none(), end.code == TaskCode::Answered);
        assert!(state != TaskState::Succeeded || end.answer.is_some());
        if let Some(answer) = &end.answer {
            let said = self.messages.values().rev().filter(|message| message.role == Role::Assistant);
            let mut said = said.map(|message| message.content.trim());
            let is_last = said.next() == Some(answer.trim());
            assert!(is_last || said.any(|part| answer.contains(part)), "{answer:?} was not said, whole or in parts");
        }
        self.ended = Some(state);
        self.is_whole();
    }

    /// Panics at gaps, at a call without an answer, and unless all answers are in order, directly after the message
    /// with the calls.
    fn is_whole(&self) {
        assert!(self.reserved.is_empty(), "not answered: {:?}", self.reserved);
        assert!(self.messages.keys().copied().eq(1..=self.messages.len().try_into().unwrap()), "a gap");
    }
}

/// Panics unless the recorded decisions, which users read and which are replayed, match what the step does.
fn decisions_say(step: &Step) {
    let (mut messages, mut answered, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut turn, mut end) = (None, None);
    for decision in &step.decisions {
        match decision {
            TaskDecision::Message { seq } => messages.push(*seq),
            TaskDecision::Answered { id, class, .. } => answered.push((Some(id), *class)),
            TaskDecision::Run { turn, call_index, tool, .. } => runs.push((*turn, *call_index, tool)),
            TaskDecision::Turn { turn: n, model, last, continues } => turn = Some((*n, model, !last && !continues)),
            TaskDecision::Ended { state, code, .. } => end = Some((*state, *code)),
            _ => {}
        }
    }
    assert!(step.messages.iter().map(|(seq, _)| *seq).eq(messages));
    let answers = step.messages.iter().map(|(_, message)| message).filter(|message| message.role == Role::Tool);
    assert!(answers.map(|message| (message.call_id.as_ref(), message.class)).eq(answered));
    let started = step.calls.iter().filter(|call| call.refusal.is_none());
    assert!(started.map(|call| (call.turn, call.call_index, &call.tool)).eq(runs));
    assert_eq!(step.turn.as_ref().map(|asked| (asked.turn, &asked.model, asked.tools)), turn);
    assert_eq!(step.ended.as_ref().map(|ended| (ended.state, ended.code)), end);
}
