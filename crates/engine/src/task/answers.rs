//! The consequences of the end of a model turn.

use redial_proto::{
    ErrorClass, Failure, Finish, Message, MessageCall, Nudged, Role, TaskCode, TaskDecision, TaskState,
};

use super::{
    event::{Proposed, Reply},
    state::{Asking, Calling, Model, Phase, Stop},
    step::StepBuilder,
};
use crate::feedback::{self, Nudge};

/// How many answers of unusable form a model may give in a row before the task accepts what it has.
const MAX_NUDGES: u32 = 2;

impl StepBuilder<'_> {
    pub(super) fn turn_ended(&mut self, asking: &Asking, end: Result<Reply, Failure>) -> Phase {
        if let Ok(reply) = &end {
            self.task.usage.add(&reply.usage);
        }
        match (asking.stop, end) {
            (Some(Stop::Cancel), _) => self.end_cancelled(),
            (_, Ok(reply)) if asking.continues => self.continued(asking, &reply),
            (_, Ok(reply)) => self.replied(asking, reply),
            (_, Err(failure)) if asking.continues && failure.class != ErrorClass::Cancelled => {
                let why = format!("its rest could not be asked for: {}: {}", failure.class, failure.message);
                self.answer_in_part(&why)
            }
            (Some(Stop::Limit(code)), Err(_)) if asking.continues => self.answer_in_part(&self.limit(code)),
            (Some(Stop::Limit(code)), Err(_)) if asking.last.is_some() => self.end_without_answer(code, None),
            (Some(Stop::Limit(code)), Err(_)) => self.ask_for_last_answer(asking.turn + 1, code, None),
            (None, Err(failure)) => self.model_failed(asking, &failure),
        }
    }

    pub(super) fn end_cancelled(&mut self) -> Phase {
        self.end(TaskState::Cancelled, TaskCode::Cancelled, Some("the user cancelled it".to_owned()), None)
    }

    fn model_failed(&mut self, asking: &Asking, failure: &Failure) -> Phase {
        if failure.class == ErrorClass::Cancelled {
            return self.end_cancelled();
        }
        let why = format!("the model could not be asked: {}: {}", failure.class, failure.message);
        let fallback = self.context.agent.fallback_model.as_ref().filter(|_| self.task.model == Model::First);
        if let Some(model) = fallback {
            let decision = TaskDecision::Fallback { model: model.clone(), because: why, pruned: Vec::new() };
            self.out.decisions.push(decision);
            self.task.model = Model::FirstFailed;
            return self.ask_again(asking);
        }
        match asking.last {
            Some(last) => self.end_without_answer(last.code, Some(&why)),
            None => self.end(TaskState::Failed, TaskCode::ModelFailed, Some(why), None),
        }
    }

    /// Asks another model the same question, also if it is the last one.
    fn ask_again(&mut self, asking: &Asking) -> Phase {
        let turn = asking.turn + 1;
        if asking.last.is_some() { self.ask_model(turn, asking.last) } else { self.ask(turn) }
    }

    fn replied(&mut self, asking: &Asking, reply: Reply) -> Phase {
        let text = reply.text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        if let Some(last) = asking.last {
            return match text {
                Some(text) => self.answer(&reply, text, last.code),
                None => self.end_without_answer(last.code, Some("the last answer was empty")),
            };
        }
        if !reply.calls.is_empty() {
            (self.task.nudges, self.task.cut_offs) = (0, 0);
            return self.run_calls(asking, reply);
        }
        let asked_enough = self.task.nudges >= MAX_NUDGES;
        match text {
            Some(text) if reply.problem.is_none() => self.answered(asking, &reply, text),
            Some(text) if asked_enough => self.accept(&reply, text),
            None if reply.finish == Finish::Refused => {
                let message = "the model or its provider refused to answer".to_owned();
                self.end(TaskState::Failed, TaskCode::NoAnswer, Some(message), None)
            }
            None if asked_enough => {
                let cut = if reply.is_cut_off() { "; the last one was cut off at its limit of tokens" } else { "" };
                let message = format!("the model gave {} answers without any text or call{cut}", self.task.nudges + 1);
                self.end(TaskState::Failed, TaskCode::NoAnswer, Some(message), None)
            }
            text => self.nudge(asking, &reply, text),
        }
    }

    /// Takes an answer although its form has a fault: the model was asked often enough for another one.
    fn accept(&mut self, reply: &Reply, text: String) -> Phase {
        let problem = reply.problem.clone().unwrap_or_default();
        self.out.decisions.push(TaskDecision::Accepted { problem, refused: self.task.nudges });
        if reply.is_cut_off() {
            return self.answer_cut_off(reply, text, None);
        }
        self.answer(reply, text, TaskCode::Answered)
    }

    /// Ends the task: an answer of the model's own accord is a success, one that a limit forced is not.
    pub(super) fn answer(&mut self, reply: &Reply, text: String, code: TaskCode) -> Phase {
        self.say(assistant(reply, text.clone()));
        let cut = if reply.is_cut_off() { "; the last answer is cut off at the model's limit of tokens" } else { "" };
        let (state, message) = match code {
            TaskCode::Answered => (TaskState::Succeeded, None),
            limit => (TaskState::Failed, Some(self.limit(limit) + cut)),
        };
        self.end(state, code, message, Some(text))
    }

    /// Tells the model what is wrong with the form of its answer, and asks again.
    fn nudge(&mut self, asking: &Asking, reply: &Reply, text: Option<String>) -> Phase {
        self.task.nudges += 1;
        if let Some(text) = text {
            self.say(assistant(reply, text));
        }
        let cut_off = reply.is_cut_off();
        let (nudge, asked) = match reply.problem.as_deref() {
            Some(problem) if cut_off => (Nudge::Problem(problem), Nudged::Shorter),
            Some(problem) => (Nudge::Problem(problem), Nudged::Form),
            None if cut_off => (Nudge::CutOffBeforeAnswer, Nudged::Shorter),
            None => (Nudge::Empty, Nudged::Answer),
        };
        let said = feedback::nudge(self.words(), nudge);
        let problem = reply.problem.clone().unwrap_or_else(|| match asked {
            Nudged::Shorter => "the reply was cut off at its limit of tokens before any answer or call".to_owned(),
            _ => "the answer was empty".to_owned(),
        });
        self.nudged(problem, asked, self.task.nudges);
        self.say_to_model(said);
        match asking.stop {
            Some(Stop::Limit(code)) => self.ask_for_last_answer(asking.turn + 1, code, None),
            _ => self.ask(asking.turn + 1),
        }
    }

    /// Records that an answer was not taken, and what the model is asked for instead.
    pub(super) fn nudged(&mut self, problem: String, asked: Nudged, time: u32) {
        self.out.decisions.push(TaskDecision::Nudged { problem, asked, time });
    }

    /// Writes the assistant's message, reserves a sequence number for the answer to each of its calls, and starts them.
    fn run_calls(&mut self, asking: &Asking, mut reply: Reply) -> Phase {
        let proposed = std::mem::take(&mut reply.calls);
        let seq = self.task.next_seq;
        let named = |(n, call): (u32, &Proposed)| MessageCall {
            id: format!("c{seq}_{n}"),
            tool: call.tool().to_owned(),
            arguments: call.final_arguments().to_owned(),
        };
        let mut message = assistant(&reply, reply.text.clone().unwrap_or_default());
        message.calls = (1..).zip(&proposed).map(named).collect();
        let ids: Vec<String> = message.calls.iter().map(|call| call.id.clone()).collect();
        self.say(message);
        self.task.next_seq += u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let (turn, stop) = (asking.turn, asking.stop);
        let mut calling = Calling { turn, base_seq: seq, calls: Vec::new(), over_budget: false, stop };
        self.count_corrections(&proposed);
        for (id, call) in ids.into_iter().zip(proposed) {
            self.propose(&mut calling, id, call);
        }
        self.go_on(calling)
    }
}

pub(super) fn assistant(reply: &Reply, text: String) -> Message {
    Message { thought: reply.thought.clone(), provider: reply.provider.clone(), ..Message::text(Role::Assistant, text) }
}
