//! One event on its way through a task.

use chrono::TimeDelta;
use redial_proto::{AgentSpec, ErrorClass, Language, Message, Role, TaskCode, TaskDecision, TaskState};
use serde_json::Value;

use super::{
    CallFailure, Ended, Event, Step, Task,
    state::{Last, Phase, Status, Stop},
};
use crate::{Time, feedback::Words};

/// Between two tries to stop what still runs.
const STOP_AGAIN: TimeDelta = TimeDelta::seconds(2);

/// A task, what it depends on, and what has to be done so far.
pub(super) struct Machine<'a> {
    pub(super) task: &'a mut Task,
    pub(super) agent: &'a AgentSpec,
    pub(super) language: Language,
    pub(super) now: Time,
    pub(super) out: Step,
}

impl<'a> Machine<'a> {
    pub(super) fn new(task: &'a mut Task, agent: &'a AgentSpec, language: Language, now: Time) -> Self {
        Self { task, agent, language, now, out: Step::default() }
    }

    pub(super) fn take(mut self, event: Event) -> Step {
        match (self.task.phase, event) {
            (Phase::Waiting, Event::Started { input, first_seq, system, carried }) => {
                self.start(input, first_seq, system, carried);
            }
            (Phase::Waiting, Event::CancelRequested) => {
                self.end(TaskState::Cancelled, TaskCode::Cancelled, Some("cancelled before it began".to_owned()), None);
            }
            (Phase::Model, Event::TurnEnded { turn, end }) if turn == self.task.turn => self.turn_ended(end),
            (Phase::Tools, Event::CallEnded { turn, call_index, end }) if turn == self.task.turn => {
                self.call_ended(call_index, &end);
            }
            (Phase::Model | Phase::Tools, Event::CancelRequested) => self.stop(Stop::Cancel),
            (Phase::Model | Phase::Tools, Event::Woken) => self.woken(),
            // Nothing to decide, late, doubled, or of another turn.
            _ => {}
        }
        self.out.wake_at = self.wake_at();
        self.out
    }

    fn start(&mut self, input: String, first_seq: u32, system: bool, carried: Value) {
        self.task.started_at = self.now;
        self.task.next_seq = first_seq;
        // Written by this very code; what another version wrote and this one cannot read is not worth failing for.
        self.task.carried = serde_json::from_value(carried).unwrap_or_default();
        self.task.carried.memory.new_task();
        if system {
            self.say(Message::text(Role::System, self.agent.system.clone()));
        }
        self.say(Message::text(Role::User, input));
        self.ask();
    }

    fn woken(&mut self) {
        match self.task.stop {
            Some(_) => self.stop_running(),
            None if self.now >= self.deadline() => self.stop(Stop::Limit(self.time_code())),
            None => {}
        }
    }

    /// The limit that is reached when the time is over.
    fn time_code(&self) -> TaskCode {
        self.task.last.map_or(TaskCode::TimeExhausted, |last| last.code)
    }

    /// Stops everything that still runs; what follows, follows when all of it has ended.
    fn stop(&mut self, why: Stop) {
        if self.task.stop == Some(why) {
            return self.stop_running();
        }
        self.task.stop = Some(why);
        self.answer_queued();
        self.stop_running();
        let calls = u32::try_from(self.out.cancel.len()).unwrap_or(u32::MAX);
        self.out.decisions.push(TaskDecision::Stopping { calls });
        if self.task.phase == Phase::Tools && !self.task.is_open() {
            self.turn_answered();
        }
    }

    fn stop_running(&mut self) {
        let turn = self.task.turn;
        if self.task.phase == Phase::Model {
            return self.out.cancel.push((turn, 0));
        }
        let running = (1..).zip(&self.task.slots).filter(|(_, call_index)| call_index.status == Status::Running);
        self.out.cancel.extend(running.map(|(n, _)| (turn, n)));
    }

    /// The failure of calls that are not run because everything is being stopped.
    pub(super) fn stopped(&self) -> CallFailure {
        let (class, message) = match self.task.stop {
            Some(Stop::Limit(code)) => (ErrorClass::BudgetExhausted, format!("not run: {}", self.limit(code))),
            _ => (ErrorClass::Cancelled, "not run: the task was cancelled".to_owned()),
        };
        CallFailure { class, message, details: Vec::new(), unknown: false }
    }

    /// Writes a message at the next place of the conversation; returns the place.
    pub(super) fn say(&mut self, message: Message) -> u32 {
        let seq = self.task.next_seq;
        self.task.next_seq += 1;
        self.write(seq, message);
        seq
    }

    pub(super) fn write(&mut self, seq: u32, message: Message) {
        self.out.decisions.push(TaskDecision::Message { seq });
        self.out.messages.push((seq, message));
    }

    pub(super) fn end(&mut self, state: TaskState, code: TaskCode, message: Option<String>, answer: Option<String>) {
        self.task.phase = Phase::Over(state);
        self.task.slots.clear();
        self.out.decisions.push(TaskDecision::Ended { state, code, message: message.clone() });
        self.out.ended = Some(Ended { state, code, message, answer });
    }

    pub(super) fn words(&self) -> Words<'a> {
        Words { language: self.language, templates: &self.agent.templates }
    }

    /// Until when the task, or its last answer, may take.
    fn deadline(&self) -> Time {
        let seconds = TimeDelta::seconds(i64::from(self.agent.budgets.seconds));
        self.task.last.map_or(self.task.started_at + seconds, |Last { until, .. }| until)
    }

    fn wake_at(&self) -> Option<Time> {
        match (self.task.phase, self.task.stop) {
            (Phase::Over(_) | Phase::Waiting, _) => None,
            (_, Some(_)) => Some(self.now + STOP_AGAIN),
            _ => Some(self.deadline().max(self.now + STOP_AGAIN)),
        }
    }
}
