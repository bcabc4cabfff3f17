//! Answers that are cut off at the model's limit of tokens: asked for again, continued, or taken and marked.

use redial_proto::{CutOff, Nudged, TaskCode, TaskState};

use super::{
    answers::assistant,
    continued::{Joined, join},
    event::Reply,
    state::{Asking, Partial, Phase},
    step::StepBuilder,
};
use crate::feedback::{self, Nudge};

/// How often the rest of one answer is asked for.
const MAX_CONTINUATIONS: u32 = 5;
/// Bytes of an answer of several parts beyond which its rest is not asked for.
const MAX_PARTS: usize = 256 * 1024;
/// Characters of the end of an answer that the model is shown, to continue from there.
const ENDING: usize = 80;
const PROBLEM: &str = "the answer was cut off at the model's limit of tokens";

impl StepBuilder<'_> {
    /// Ends the task, because the model answered in a usable form, unless the answer is cut off and something can be
    /// done about it.
    pub(super) fn answered(&mut self, asking: &Asking, reply: &Reply, text: String) -> Phase {
        if !reply.is_cut_off() {
            return self.answer(reply, text, TaskCode::Answered);
        }
        let may_ask = asking.stop.is_none() && self.reached().is_none();
        match self.context.agent.cut_off {
            CutOff::Shorter if may_ask && self.may_be_shortened() => self.ask_for_shorter(asking, reply, text),
            CutOff::Shorter if self.task.cut_offs > 0 => {
                let why = format!("a shorter one was asked for {}", times(self.task.cut_offs));
                self.answer_cut_off(reply, text, Some(&why))
            }
            CutOff::Continue if may_ask => {
                self.say(assistant(reply, text));
                let text = reply.text.as_deref().unwrap_or_default().trim_start().to_owned();
                self.ask_for_rest(asking, Partial { text, asked: 0 })
            }
            CutOff::Shorter | CutOff::Continue | CutOff::Accept => self.answer_cut_off(reply, text, None),
        }
    }

    fn may_be_shortened(&self) -> bool {
        let (task, agent) = (&*self.task, self.context.agent);
        task.cut_offs < agent.max_corrections && task.corrections < agent.budgets.corrections
    }

    /// Asks for a shorter answer, as a correction, so that it is asked for a bounded number of times.
    fn ask_for_shorter(&mut self, asking: &Asking, reply: &Reply, text: String) -> Phase {
        self.task.cut_offs += 1;
        self.task.corrections = self.task.corrections.saturating_add(1);
        self.say(assistant(reply, text));
        self.nudged(PROBLEM.to_owned(), Nudged::Shorter, self.task.cut_offs);
        let said = feedback::nudge(self.words(), Nudge::CutOff);
        self.say_to_model(said);
        self.ask(asking.turn + 1)
    }

    fn ask_for_rest(&mut self, asking: &Asking, mut partial: Partial) -> Phase {
        partial.asked += 1;
        self.nudged(PROBLEM.to_owned(), Nudged::Rest, partial.asked);
        let said = feedback::nudge(self.words(), Nudge::Continue { ending: ending(&partial.text) });
        self.say_to_model(said);
        self.task.partial = Some(partial);
        self.task.turns += 1;
        self.ask_to_continue(asking.turn + 1)
    }

    /// Takes the rest of an answer, or what the model took for it.
    pub(super) fn continued(&mut self, asking: &Asking, reply: &Reply) -> Phase {
        let partial = self.task.partial.clone().unwrap_or_default();
        let Some(rest) = reply.text.clone().filter(|text| !text.trim().is_empty()) else {
            return self.answer_in_part("the model was asked for the rest and sent nothing");
        };
        self.say(assistant(reply, rest.trim().to_owned()));
        let is_complete = !reply.is_cut_off();
        match join(&partial.text, &rest) {
            Joined::Again(text) | Joined::Longer(text) if is_complete => self.end_with(&text),
            Joined::Nothing if is_complete => self.end_with(&partial.text),
            Joined::Longer(text) | Joined::Again(text) if text.len() > partial.text.len() => {
                let asked = partial.asked;
                let may_ask = asking.stop.is_none() && self.reached().is_none() && text.len() <= MAX_PARTS;
                let partial = Partial { text, asked };
                if may_ask && asked < MAX_CONTINUATIONS {
                    return self.ask_for_rest(asking, partial);
                }
                self.task.partial = Some(partial);
                self.answer_in_part(&format!("its rest was asked for {}", times(asked)))
            }
            _ => self.answer_in_part("the model was asked for the rest and repeated what it had said"),
        }
    }

    /// Ends the task with an answer that was put together.
    fn end_with(&mut self, text: &str) -> Phase {
        self.task.partial = None;
        self.end(TaskState::Succeeded, TaskCode::Answered, None, Some(text.trim().to_owned()))
    }

    /// Ends the task with as much of the answer as there is.
    pub(super) fn answer_in_part(&mut self, why: &str) -> Phase {
        let text = self.task.partial.take().unwrap_or_default().text.trim().to_owned();
        self.end_cut_off(text, Some(why))
    }

    /// Ends the task with an answer whose end is missing.
    pub(super) fn answer_cut_off(&mut self, reply: &Reply, text: String, why: Option<&str>) -> Phase {
        self.say(assistant(reply, text.clone()));
        self.end_cut_off(text, why)
    }

    fn end_cut_off(&mut self, text: String, why: Option<&str>) -> Phase {
        let why = why.map(|why| format!("; {why}")).unwrap_or_default();
        let message = format!("the answer is cut off at the model's limit of tokens{why}");
        self.end(TaskState::Succeeded, TaskCode::AnswerCutOff, Some(message), Some(text))
    }
}

fn times(times: u32) -> String {
    if times == 1 { "once".to_owned() } else { format!("{times} times") }
}

fn ending(text: &str) -> &str {
    let text = text.trim_end();
    let start = text.char_indices().rev().nth(ENDING - 1).map_or(0, |(at, _)| at);
    &text[start..]
}
