//! The record of a conversation, and the rules that every step must keep.
//!
//! The rules come from the documentation, not from the engine: this module knows only events and steps.

use std::collections::{BTreeMap, BTreeSet};

use redial_engine::{
    Time,
    task::{Event, Step, Task},
};
use redial_proto::{AgentSpec, CallId, Message, Role, TaskCode, TaskState};
use redial_records::TaskOutcome;

use super::{decisions, promises::Promises};

/// A conversation over its tasks.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// By sequence number, from 1.
    pub(crate) messages: BTreeMap<u32, Message>,
    /// Sequence numbers reserved for the answers of calls.
    reserved: BTreeMap<u32, String>,
    ids: BTreeSet<String>,
    /// The turn that a model works on.
    pub(crate) asked: Option<u32>,
    /// The turn and index of every call on record.
    calls: BTreeMap<CallId, (u32, u32)>,
    /// The calls that run, by turn and call index.
    pub(crate) running: BTreeMap<(u32, u32), Running>,
    last_turn: u32,
    started: BTreeSet<(u32, u32)>,
    is_started: bool,
    cancelled: bool,
    pub(crate) ended: Option<TaskOutcome>,
    promises: Promises,
}

/// A step as it was committed.
pub(crate) struct Committed<'a> {
    pub(crate) event: &'a Event,
    pub(crate) step: &'a Step,
    /// The task after it.
    pub(crate) task: &'a Task,
    pub(crate) agent: &'a AgentSpec,
    pub(crate) now: Time,
}

/// A call that a worker runs.
#[derive(Debug)]
pub(crate) struct Running {
    tool: String,
    pub(crate) told_to_stop: bool,
}

pub(crate) type Verdict = Result<(), String>;

pub(crate) fn must(fine: bool, what: impl FnOnce() -> String) -> Verdict {
    if fine { Ok(()) } else { Err(what()) }
}

impl Record {
    /// The next task of the conversation begins.
    pub(crate) fn next_task(&mut self) {
        let before = std::mem::take(self);
        *self = Self { messages: before.messages, ids: before.ids, promises: before.promises, ..Self::default() };
        self.promises.next_task();
    }

    /// The sequence number of the next message.
    pub(crate) fn next_seq(&self) -> u32 {
        self.messages.last_key_value().map_or(1, |(seq, _)| seq + 1)
    }

    /// Records a committed step; the error names a rule that it breaks.
    pub(crate) fn commit(&mut self, done: &Committed<'_>) -> Verdict {
        let Committed { event, step, task, .. } = done;
        if self.ended.is_some() {
            return must(**step == Step::default(), || format!("something happened after the end: {step:?}"));
        }
        self.event(event, done.now);
        self.messages_of(step)?;
        decisions::check(step)?;
        self.calls_of(done)?;
        self.cancels_of(step)?;
        self.turn_of(done)?;
        self.end_of(step, task)?;
        self.counts(task)?;
        self.continues(step, task)
    }

    fn event(&mut self, event: &Event, now: Time) {
        match event {
            Event::Started { .. } => self.is_started = true,
            Event::TurnEnded { turn, .. } if self.asked == Some(*turn) => {
                self.asked = None;
                self.promises.replied(event);
            }
            Event::CallEnded { turn, call_index, .. } => {
                self.running.remove(&(*turn, *call_index));
                self.promises.call_ended(event, now);
            }
            Event::CancelRequested => self.cancelled = true,
            _ => {}
        }
    }

    fn messages_of(&mut self, step: &Step) -> Verdict {
        for (seq, message) in &step.messages {
            must(!self.messages.contains_key(seq), || format!("message {seq} is written twice"))?;
            let reserved = self.reserved.remove(seq);
            must(message.call_id == reserved, || format!("message {seq} is reserved for {reserved:?}: {message:?}"))?;
            must((message.role == Role::Tool) == reserved.is_some(), || format!("message {seq} has the wrong role"))?;
            must(message.role == Role::Assistant || message.calls.is_empty(), || {
                format!("message {seq} must not have calls")
            })?;
            for (n, call) in (1..).zip(&message.calls) {
                must(self.ids.insert(call.id.clone()), || format!("id {} is used twice", call.id))?;
                self.reserved.insert(seq + n, call.id.clone());
            }
            self.messages.insert(*seq, message.clone());
        }
        Ok(())
    }

    fn calls_of(&mut self, done: &Committed<'_>) -> Verdict {
        let step = done.step;
        for call in &step.calls {
            let id = (call.turn, call.call_index);
            must(self.started.insert(id), || format!("call {id:?} is written twice"))?;
            must(self.calls.insert(call.id, id).is_none(), || format!("call {} is written twice", call.id))?;
            must(call.turn == self.last_turn, || format!("a call of turn {} starts", call.turn))?;
            if call.refusal.is_some() {
                continue;
            }
            must(!self.cancelled, || format!("call {id:?} starts after the cancel"))?;
            must(step.ended.is_none(), || format!("call {id:?} starts at the end"))?;
            let moves = |tool: &str| tool.starts_with("move_");
            let other = self.running.values().any(|running| moves(&running.tool));
            must(!(moves(&call.tool) && other), || format!("{} does not wait for the call before it", call.tool))?;
            self.promises.starts(call, done.agent, done.now)?;
            self.running.insert(id, Running { tool: call.tool.clone(), told_to_stop: false });
        }
        Ok(())
    }

    fn cancels_of(&mut self, step: &Step) -> Verdict {
        for call in &step.cancel {
            let Some((turn, call_index)) = self.calls.get(call).copied() else {
                return Err(format!("call {call} is to stop, and is not on record"));
            };
            match self.running.get_mut(&(turn, call_index)) {
                Some(running) => running.told_to_stop = true,
                None => {
                    must(call_index == 0 && self.asked == Some(turn), || {
                        format!("{turn}/{call_index} is not running")
                    })?;
                }
            }
        }
        Ok(())
    }

    fn turn_of(&mut self, done: &Committed<'_>) -> Verdict {
        let Some(turn) = &done.step.turn else { return Ok(()) };
        let known = Some(&turn.model) == done.agent.fallback_model.as_ref() || turn.model == done.agent.model;
        must(known, || format!("{} is not one of the agent's models", turn.model))?;
        let over = turn.tools && done.task.turns() > done.agent.budgets.turns;
        must(!over, || format!("turn {} of {}", done.task.turns(), done.agent.budgets.turns))?;
        must(self.asked.is_none(), || format!("turn {:?} is still open", self.asked))?;
        must(self.running.is_empty(), || format!("{:?} still run", self.running))?;
        must(!self.cancelled, || "a model is asked after the cancel".to_owned())?;
        must(turn.turn == self.last_turn + 1, || format!("turn {} after {}", turn.turn, self.last_turn))?;
        must(self.calls.insert(turn.id, (turn.turn, 0)).is_none(), || format!("call {} is written twice", turn.id))?;
        (self.asked, self.last_turn) = (Some(turn.turn), turn.turn);
        self.is_whole()
    }

    fn end_of(&mut self, step: &Step, task: &Task) -> Verdict {
        let Some(end) = &step.ended else { return Ok(()) };
        must(step.turn.is_none() && self.asked.is_none(), || "a model is asked at the end".to_owned())?;
        must(self.running.is_empty(), || format!("{:?} run at the end", self.running))?;
        must(task.state() == end.state && end.state.is_terminal(), || format!("the state is {}", task.state()))?;
        let wanted = match end.code {
            TaskCode::Answered | TaskCode::AnswerCutOff => TaskState::Succeeded,
            TaskCode::Cancelled => TaskState::Cancelled,
            _ => TaskState::Failed,
        };
        must(end.state == wanted, || format!("{} ends {}", end.code, end.state))?;
        let succeeded = end.state == TaskState::Succeeded;
        let simply = end.code == TaskCode::Answered;
        must(end.message.is_none() == simply, || format!("{} says {:?}", end.code, end.message))?;
        must(!succeeded || end.answer.is_some(), || "a success without an answer".to_owned())?;
        if let Some(answer) = &end.answer {
            self.is_last(answer)?;
        }
        self.ended = Some(end.clone());
        self.is_whole()
    }

    /// The answer is what the model said last; of an answer in parts, that is its end, or more of the same.
    fn is_last(&self, answer: &str) -> Verdict {
        let said = self.messages.values().rev().filter(|message| message.role == Role::Assistant);
        let mut said = said.map(|message| message.content.trim());
        let last = said.next().unwrap_or_default();
        let mut in_parts = || said.any(|part| answer.contains(part));
        must(last == answer.trim() || in_parts(), || format!("{answer:?} is the answer, and {last:?} was said last"))
    }

    /// The counts that users see are correct.
    fn counts(&self, task: &Task) -> Verdict {
        must(task.usage() == self.promises.usage, || format!("{:?}, not {:?}", task.usage(), self.promises.usage))?;
        let (counted, ran) = (task.tool_calls(), self.promises.runs);
        must(counted >= ran && (counted == ran || !self.running.is_empty()), || {
            format!("{counted} tool calls, not {ran}")
        })
    }

    /// A task that has not ended will get another event.
    fn continues(&self, step: &Step, task: &Task) -> Verdict {
        if self.ended.is_some() {
            return must(step.wake_at.is_none(), || "it has a wake time after its end".to_owned());
        }
        if !self.is_started {
            return must(task.state() == TaskState::Waiting, || format!("{} before it started", task.state()));
        }
        must(task.state() == TaskState::Running, || format!("the state is {}", task.state()))?;
        must(self.asked.is_some() || !self.running.is_empty(), || "nothing runs: it is stuck".to_owned())?;
        must(step.wake_at.is_some(), || "it has no wake time".to_owned())
    }

    /// No gaps, no call without an answer, and all answers in order, directly after the message with the calls.
    fn is_whole(&self) -> Verdict {
        must(self.reserved.is_empty(), || format!("not answered: {:?}", self.reserved))?;
        let gapless = self.messages.keys().copied().eq(1..self.next_seq());
        must(gapless, || format!("gaps: {:?}", self.messages.keys()))?;
        valid(self.messages.values())
    }
}

/// Checks that each call is answered once, in order, directly after the message that contains it.
pub(crate) fn valid<'a>(messages: impl Iterator<Item = &'a Message>) -> Verdict {
    let mut open = std::collections::VecDeque::new();
    for (n, message) in messages.enumerate() {
        if message.role == Role::Tool {
            let id = message.call_id.as_ref();
            must(open.pop_front() == id, || format!("message {n} answers {id:?}, out of order"))?;
        } else {
            must(open.is_empty(), || format!("{open:?} are not answered before message {n}"))?;
        }
        open.extend(message.calls.iter().map(|call| &call.id));
    }
    must(open.is_empty(), || format!("{open:?} are not answered at the end"))
}
