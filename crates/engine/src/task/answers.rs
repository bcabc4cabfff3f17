//! A model's turn is over.

use redial_proto::{ErrorClass, Finish, Message, MessageCall, Role, TaskCode, TaskDecision, TaskState};

use super::{
    CallFailure, Proposed, Reply,
    machine::Machine,
    state::{Model, Phase, Stop},
};
use crate::feedback::{self, Nudge};

/// Answers without usable form in a row that a model may give before the task goes on without asking again.
const MOST_NUDGES: u32 = 2;

impl Machine<'_> {
    pub(super) fn turn_ended(&mut self, end: Result<Reply, CallFailure>) {
        if let Ok(reply) = &end {
            let (sum, usage) = (&mut self.task.usage, &reply.usage);
            sum.input_tokens = sum.input_tokens.saturating_add(usage.input_tokens);
            sum.output_tokens = sum.output_tokens.saturating_add(usage.output_tokens);
            sum.cost_micros = sum.cost_micros.saturating_add(usage.cost_micros);
        }
        match (self.task.stop, end) {
            (Some(Stop::Cancel), _) => self.end_cancelled(),
            (_, Ok(reply)) => self.replied(reply),
            (Some(Stop::Limit(code)), Err(_)) => self.ask_for_last_answer(code, None),
            (None, Err(failure)) => self.model_failed(&failure),
        }
    }

    pub(super) fn end_cancelled(&mut self) {
        self.end(TaskState::Cancelled, TaskCode::Cancelled, Some("the user cancelled it".to_owned()), None);
    }

    fn model_failed(&mut self, failure: &CallFailure) {
        if failure.class == ErrorClass::Cancelled {
            return self.end_cancelled();
        }
        let why = format!("the model could not be asked: {}: {}", failure.class, failure.message);
        match (&self.task.model, &self.agent.fallback_model) {
            (Model::First, Some(fallback)) => {
                let decision = TaskDecision::Fallback { model: fallback.clone(), because: why, pruned: Vec::new() };
                self.out.decisions.push(decision);
                self.task.model = Model::FirstFailed;
                self.ask_again();
            }
            _ => match self.task.last {
                Some(last) => self.end_without_answer(last.code, Some(&why)),
                None => self.end(TaskState::Failed, TaskCode::ModelFailed, Some(why), None),
            },
        }
    }

    /// The same question to another model, also if it is the last one.
    fn ask_again(&mut self) {
        match self.task.last {
            Some(_) => self.ask_model(false),
            None => self.ask(),
        }
    }

    fn replied(&mut self, reply: Reply) {
        let text = reply.text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        if let Some(last) = self.task.last {
            return match text {
                Some(text) => self.answer(&reply, text, last.code),
                None => self.end_without_answer(last.code, Some("the last answer was empty")),
            };
        }
        if !reply.calls.is_empty() {
            self.task.nudges = 0;
            return self.run_calls(reply);
        }
        match (text, &reply.problem) {
            (Some(text), None) => self.answer(&reply, text, TaskCode::Answered),
            (Some(text), Some(_)) if self.task.nudges >= MOST_NUDGES => {
                self.answer(&reply, text, TaskCode::Answered);
            }
            (None, _) if reply.finish == Finish::Refused => {
                let message = "the model or its provider refused to answer".to_owned();
                self.end(TaskState::Failed, TaskCode::NoAnswer, Some(message), None);
            }
            (None, _) if self.task.nudges >= MOST_NUDGES => {
                let message = format!("the model gave {} answers without any text or call", self.task.nudges + 1);
                self.end(TaskState::Failed, TaskCode::NoAnswer, Some(message), None);
            }
            (text, _) => self.nudge(&reply, text),
        }
    }

    /// The end: an answer of the model's own accord is a success, one that a limit forced is not.
    fn answer(&mut self, reply: &Reply, text: String, code: TaskCode) {
        self.say(assistant(reply, text.clone()));
        let (state, message) = match code {
            TaskCode::Answered => (TaskState::Succeeded, None),
            limit => (TaskState::Failed, Some(self.limit(limit))),
        };
        self.end(state, code, message, Some(text));
    }

    /// Says what is wrong with the form of an answer, and asks again.
    fn nudge(&mut self, reply: &Reply, text: Option<String>) {
        self.task.nudges += 1;
        if let Some(text) = text {
            self.say(assistant(reply, text));
        }
        let problem = reply.problem.as_deref().map_or(Nudge::Empty, Nudge::Problem);
        let said = feedback::nudge(self.words(), problem);
        let problem = reply.problem.clone().unwrap_or_else(|| "the answer was empty".to_owned());
        self.out.decisions.push(TaskDecision::Nudged { problem });
        self.say_to_model(said);
        match self.task.stop {
            Some(Stop::Limit(code)) => self.ask_for_last_answer(code, None),
            _ => self.ask(),
        }
    }

    /// Writes the assistant's message, reserves a place for the answer to each of its calls, and starts them.
    fn run_calls(&mut self, mut reply: Reply) {
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
        self.task.base_seq = self.say(message);
        self.task.next_seq += u32::try_from(ids.len()).unwrap_or(u32::MAX);
        self.task.phase = Phase::Tools;
        self.count_corrections(&proposed);
        for (id, call) in ids.into_iter().zip(proposed) {
            self.propose(id, call);
        }
        if !self.task.is_open() {
            self.turn_answered();
        }
    }
}

fn assistant(reply: &Reply, text: String) -> Message {
    Message { thought: reply.thought.clone(), provider: reply.provider.clone(), ..Message::text(Role::Assistant, text) }
}
