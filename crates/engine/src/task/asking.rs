//! Asking a model: which one gets the turn, and whether there may be another turn.

use chrono::TimeDelta;
use redial_proto::{Message, Role, TaskCode, TaskDecision, TaskState};

use super::{
    state::{Asking, LastAnswer, Model, Phase},
    step::{StepBuilder, WantedTurn},
};
use crate::feedback::{self, Nudge};

const LAST_ANSWER: TimeDelta = TimeDelta::seconds(300);

impl StepBuilder<'_> {
    /// Asks for this turn, or for a last answer if a limit is reached.
    pub(super) fn ask(&mut self, turn: u32) -> Phase {
        if let Some(code) = self.reached() {
            return self.ask_for_last_answer(turn, code, None);
        }
        self.task.turns += 1;
        self.ask_model(turn, None)
    }

    /// Asks once for an answer without tools.
    pub(super) fn ask_for_last_answer(&mut self, turn: u32, code: TaskCode, tool: Option<&str>) -> Phase {
        self.out.decisions.push(TaskDecision::LastAnswer { code });
        let text = feedback::nudge(self.words(), Nudge::LastAnswer { code, tool });
        self.say_to_model(text);
        self.ask_model(turn, Some(LastAnswer { code, until: self.context.now + LAST_ANSWER }))
    }

    pub(super) fn ask_model(&mut self, turn: u32, last: Option<LastAnswer>) -> Phase {
        let asking = self.asking();
        self.ask_model_for(Asking { turn, last, ..asking })
    }

    /// Asks for the rest of an answer, without tools.
    pub(super) fn ask_to_continue(&mut self, turn: u32) -> Phase {
        let asking = self.asking();
        self.ask_model_for(Asking { turn, continues: true, ..asking })
    }

    fn asking(&mut self) -> Asking {
        Asking { turn: 0, call: (self.context.new_id)(), last: None, continues: false, stop: None }
    }

    fn ask_model_for(&mut self, asking: Asking) -> Phase {
        let Asking { turn, call, continues, .. } = asking;
        let (model, last) = (self.model().to_owned(), asking.last.is_some());
        self.out.decisions.push(TaskDecision::Turn { turn, model: model.clone(), last, continues });
        self.out.turn = Some(WantedTurn { id: call, turn, model, tools: !last && !continues });
        Phase::Asking(asking)
    }

    pub(super) fn say_to_model(&mut self, text: String) {
        self.say(Message { by_redial: true, ..Message::text(Role::User, text) });
    }

    /// Returns the model that gets the next turn.
    fn model(&self) -> &str {
        let agent = self.context.agent;
        match (&self.task.model, &agent.fallback_model) {
            (Model::FallbackFor(_) | Model::FirstFailed, Some(fallback)) => fallback,
            _ => &agent.model,
        }
    }

    /// Returns the first limit of the task that is reached before a turn.
    pub(super) fn reached(&self) -> Option<TaskCode> {
        let (task, budgets) = (&*self.task, &self.context.agent.budgets);
        let tokens = task.usage.tokens();
        #[expect(clippy::cast_precision_loss, reason = "2^53 millionths are nine billion dollars")]
        let cost = task.usage.cost_micros.unwrap_or_default() as f64 / 1e6;
        let is_cost_unknown = task.usage.turns_without_price > 0;
        let time = self.context.now - task.started_at;
        if task.turns >= budgets.turns {
            Some(TaskCode::TurnsExhausted)
        } else if budgets.tokens.is_some_and(|most| tokens >= most) {
            Some(TaskCode::TokensExhausted)
        } else if budgets.cost_usd.is_some_and(|most| cost >= most) {
            Some(TaskCode::CostExhausted)
        } else if budgets.cost_usd.is_some() && is_cost_unknown {
            Some(TaskCode::CostUnknown)
        } else if time >= TimeDelta::seconds(i64::from(budgets.seconds)) {
            Some(TaskCode::TimeExhausted)
        } else {
            None
        }
    }

    /// Writes a limit in words, with its value.
    pub(super) fn limit(&self, code: TaskCode) -> String {
        let budgets = &self.context.agent.budgets;
        match code {
            TaskCode::TurnsExhausted => format!("the task's {} model turns are used up", budgets.turns),
            TaskCode::ToolCallsExhausted => format!("the task's {} tool calls are used up", budgets.tool_calls),
            TaskCode::TokensExhausted => {
                format!("the task's {} tokens are used up", budgets.tokens.unwrap_or_default())
            }
            TaskCode::CostExhausted => {
                format!("the task's {} US dollars are used up", budgets.cost_usd.unwrap_or_default())
            }
            TaskCode::CostUnknown => format!(
                "a model of the task has no price, so it is unknown whether the task's {} US dollars are used up: give the \
                 model input_price and output_price in models.toml, or the agent no budgets.cost_usd",
                budgets.cost_usd.unwrap_or_default()
            ),
            TaskCode::TimeExhausted => format!("the task's {} seconds are over", budgets.seconds),
            TaskCode::CorrectionsExhausted => "the corrections are used up".to_owned(),
            TaskCode::ModelFailed => "the model could not be asked".to_owned(),
            TaskCode::NoAnswer => "the model did not answer".to_owned(),
            TaskCode::Cancelled => "the task was cancelled".to_owned(),
            TaskCode::Internal | TaskCode::Other => "Redial failed".to_owned(),
            TaskCode::Answered => "the model answered".to_owned(),
            TaskCode::AnswerCutOff => "the answer is cut off".to_owned(),
        }
    }

    pub(super) fn end_without_answer(&mut self, code: TaskCode, why: Option<&str>) -> Phase {
        let message = match why {
            Some(why) => format!("{}; {why}", self.limit(code)),
            None => format!("{}; there was no last answer in time", self.limit(code)),
        };
        self.end(TaskState::Failed, code, Some(message), None)
    }
}
