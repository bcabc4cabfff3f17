//! One event and what follows from it.

use chrono::TimeDelta;
use redial_proto::{
    AgentSpec, CallId, ErrorClass, Failure, Help, Language, Message, Repair, Role, TaskCode, TaskDecision, TaskState,
};
use redial_records::TaskOutcome;
use serde_json::Value;

use super::{
    event::Event,
    state::{Calling, Phase, Stop, Task},
    turn_call::Status,
};
use crate::{Time, feedback::Words};

/// Between two tries to stop what still runs.
const STOP_AGAIN: TimeDelta = TimeDelta::seconds(2);

/// Lets something happen to a task: changes it, and says what has to be done.
///
/// An event that does not fit is late or a duplicate: it changes nothing. Whatever happens and in whatever order, every
/// call of a reply gets exactly one tool message, at the sequence number that was reserved for it.
pub fn step<'a>(task: &'a mut Task, event: Event, context: StepContext<'a>) -> Step {
    StepBuilder { task, context, out: Step::default() }.take(event)
}

/// What a step depends on besides the task and the event.
pub struct StepContext<'a> {
    pub agent: &'a AgentSpec,
    /// Language of the texts for its model.
    pub language: Language,
    pub now: Time,
    pub new_id: &'a mut dyn FnMut() -> CallId,
}

/// What follows from an event: all of it is written in one transaction, then the jobs are published.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// For the record, and for people.
    pub decisions: Vec<TaskDecision>,
    /// Messages to write, each with its sequence number in the conversation.
    pub messages: Vec<(u32, Message)>,
    /// Calls to write: those that run, and those that were refused.
    pub calls: Vec<WantedCall>,
    /// A model to ask.
    pub turn: Option<WantedTurn>,
    pub cancel: Vec<CallId>,
    /// How the task ended, if it did.
    pub ended: Option<TaskOutcome>,
    /// When to send [`Event::Woken`]; `None` once it ended.
    pub wake_at: Option<Time>,
}

/// A tool call to write.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedCall {
    pub id: CallId,
    pub turn: u32,
    /// Its index in the turn, from 1.
    pub call_index: u32,
    /// The tool's own name, or the name as written if there is no such tool.
    pub tool: String,
    /// Checked arguments, or what was written if it was refused.
    pub arguments: String,
    /// The version of the tool that was offered.
    pub version: String,
    /// What was changed, without loss.
    pub repairs: Vec<Repair>,
    /// JSON pointers to properties that the tool's schema does not declare, at most 100.
    pub undeclared: Vec<String>,
    /// What helps to correct it if it is refused, without repairs and undeclared properties.
    pub help: Option<Box<Help>>,
    /// Why it does not run; it is on record only.
    pub refusal: Option<Failure>,
}

/// A model turn to ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedTurn {
    /// The id of the call that asks the model.
    pub id: CallId,
    /// The turn, from 1.
    pub turn: u32,
    /// The model, by its name in `models.toml`.
    pub model: String,
    /// False for a last answer, and for the rest of an answer: the model gets no tools.
    pub tools: bool,
}

/// A task, what the step depends on, and what has to be done so far.
///
/// Its methods take the phase that the task is in and return the next one.
pub(super) struct StepBuilder<'a> {
    pub(super) task: &'a mut Task,
    pub(super) context: StepContext<'a>,
    pub(super) out: Step,
}

impl<'a> StepBuilder<'a> {
    fn take(mut self, event: Event) -> Step {
        let phase = std::mem::take(&mut self.task.phase);
        self.task.phase = self.next_phase(phase, event);
        self.out.wake_at = self.wake_at();
        self.out
    }

    fn next_phase(&mut self, phase: Phase, event: Event) -> Phase {
        match (phase, event) {
            (Phase::Waiting, Event::Started { input, first_seq, system, carried }) => {
                self.start(input, first_seq, system, carried)
            }
            (Phase::Waiting, Event::CancelRequested) => {
                self.end(TaskState::Cancelled, TaskCode::Cancelled, Some("cancelled before it began".to_owned()), None)
            }
            (Phase::Asking(asking), Event::TurnEnded { turn, end }) if turn == asking.turn => {
                self.turn_ended(&asking, end)
            }
            (Phase::Calling(calling), Event::CallEnded { turn, call_index, end }) if turn == calling.turn => {
                self.call_ended(calling, call_index, &end)
            }
            (phase @ (Phase::Asking(_) | Phase::Calling(_)), Event::CancelRequested) => self.stop(phase, Stop::Cancel),
            (phase @ (Phase::Asking(_) | Phase::Calling(_)), Event::Woken) => self.woken(phase),
            // Nothing to decide, late, a duplicate, or of another turn.
            (phase, _) => phase,
        }
    }

    fn start(&mut self, input: String, first_seq: u32, system: bool, carried: Value) -> Phase {
        self.task.started_at = self.context.now;
        self.task.next_seq = first_seq;
        // Written by this very code; what another version wrote and this one cannot read is not worth failing for.
        self.task.carried = serde_json::from_value(carried).unwrap_or_default();
        self.task.carried.memory.new_task();
        if system {
            self.say(Message::text(Role::System, self.context.agent.system.clone()));
        }
        self.say(Message::text(Role::User, input));
        self.ask(1)
    }

    fn woken(&mut self, phase: Phase) -> Phase {
        if phase.stop().is_some() {
            self.stop_running(&phase);
            return phase;
        }
        if self.context.now < self.deadline(&phase) {
            return phase;
        }
        // The time of a last answer is that of the limit which asked for it.
        let code = phase.last().map_or(TaskCode::TimeExhausted, |last| last.code);
        self.stop(phase, Stop::Limit(code))
    }

    /// Stops everything that still runs. The task continues once all of it has ended.
    fn stop(&mut self, mut phase: Phase, why: Stop) -> Phase {
        if phase.stop() == Some(why) {
            self.stop_running(&phase);
            return phase;
        }
        match &mut phase {
            Phase::Asking(asking) => asking.stop = Some(why),
            Phase::Calling(calling) => {
                calling.stop = Some(why);
                self.answer_queued(calling);
            }
            Phase::Waiting | Phase::Ended(_) => {}
        }
        self.stop_running(&phase);
        let calls = u32::try_from(self.out.cancel.len()).unwrap_or(u32::MAX);
        self.out.decisions.push(TaskDecision::Stopping { calls });
        match phase {
            Phase::Calling(calling) => self.go_on(calling),
            phase => phase,
        }
    }

    fn stop_running(&mut self, phase: &Phase) {
        match phase {
            Phase::Asking(asking) => self.out.cancel.push(asking.call),
            Phase::Calling(calling) => {
                let running = calling.calls.iter().filter_map(|call| match call.status {
                    Status::Running(id) => Some(id),
                    _ => None,
                });
                self.out.cancel.extend(running);
            }
            Phase::Waiting | Phase::Ended(_) => {}
        }
    }

    /// Returns the phase after one of a turn's calls was answered, or several were.
    pub(super) fn go_on(&mut self, calling: Calling) -> Phase {
        if calling.is_open() { Phase::Calling(calling) } else { self.turn_answered(&calling) }
    }

    /// Makes the failure of calls that are not run because everything is being stopped.
    pub(super) fn stopped(&self, why: Option<Stop>) -> Failure {
        match why {
            Some(Stop::Limit(code)) => failed(ErrorClass::BudgetExhausted, format!("not run: {}", self.limit(code))),
            _ => failed(ErrorClass::Cancelled, "not run: the task was cancelled"),
        }
    }

    /// Writes a message at the end of the conversation; returns its sequence number.
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

    pub(super) fn end(
        &mut self,
        state: TaskState,
        code: TaskCode,
        message: Option<String>,
        answer: Option<String>,
    ) -> Phase {
        self.out.decisions.push(TaskDecision::Ended { state, code, message: message.clone() });
        self.out.ended = Some(TaskOutcome { state, code, message, answer });
        Phase::Ended(state)
    }

    pub(super) fn words(&self) -> Words<'a> {
        Words { language: self.context.language, templates: &self.context.agent.templates }
    }

    /// Returns until when the task, or its last answer, may take.
    fn deadline(&self, phase: &Phase) -> Time {
        let seconds = TimeDelta::seconds(i64::from(self.context.agent.budgets.seconds));
        phase.last().map_or(self.task.started_at + seconds, |last| last.until)
    }

    fn wake_at(&self) -> Option<Time> {
        let phase = &self.task.phase;
        let again = self.context.now + STOP_AGAIN;
        match phase {
            Phase::Waiting | Phase::Ended(_) => None,
            Phase::Asking(_) | Phase::Calling(_) if phase.stop().is_some() => Some(again),
            Phase::Asking(_) | Phase::Calling(_) => Some(self.deadline(phase).max(again)),
        }
    }
}

/// Makes a failure of a call that certainly did nothing.
pub(super) fn failed(class: ErrorClass, message: impl Into<String>) -> Failure {
    Failure::new(class, message).without_effect()
}
