//! Asking a model: who has the turn, and whether there may be another one.

use chrono::TimeDelta;
use redial_proto::{Message, Role, TaskCode, TaskDecision, TaskState};

use super::{
    NewTurn,
    machine::Machine,
    state::{Last, Model, Phase},
};
use crate::feedback::{self, Nudge};

/// How long a last answer may take.
const LAST_ANSWER: TimeDelta = TimeDelta::seconds(300);

impl Machine<'_> {
    /// Asks for the next turn, or for a last answer if a limit is reached.
    pub(super) fn ask(&mut self) {
        if let Some(code) = self.reached() {
            return self.ask_for_last_answer(code, None);
        }
        self.task.turns += 1;
        self.ask_model(true);
    }

    /// Asks once for an answer without tools.
    pub(super) fn ask_for_last_answer(&mut self, code: TaskCode, tool: Option<&str>) {
        self.task.stop = None;
        if self.task.last.is_some() {
            return self.end_without_answer(code, None);
        }
        self.task.last = Some(Last { code, until: self.now + LAST_ANSWER });
        self.out.decisions.push(TaskDecision::LastAnswer { code });
        let text = feedback::nudge(self.words(), Nudge::LastAnswer { code, tool });
        self.say_to_model(text);
        self.ask_model(false);
    }

    pub(super) fn ask_model(&mut self, tools: bool) {
        let turn = self.task.turn + 1;
        self.task.turn = turn;
        self.task.phase = Phase::Model;
        self.task.slots.clear();
        self.task.over_budget = false;
        let model = self.model().to_owned();
        self.out.decisions.push(TaskDecision::Turn { turn, model: model.clone(), last: !tools });
        self.out.turn = Some(NewTurn { turn, model, tools });
    }

    pub(super) fn say_to_model(&mut self, text: String) {
        self.say(Message { by_redial: true, ..Message::text(Role::User, text) });
    }

    /// Who has the next turn.
    fn model(&self) -> &str {
        match (&self.task.model, &self.agent.fallback_model) {
            (Model::FallbackFor(_) | Model::FirstFailed, Some(fallback)) => fallback,
            _ => &self.agent.model,
        }
    }

    /// The first limit of the task that is reached before a turn.
    fn reached(&self) -> Option<TaskCode> {
        let (task, budgets) = (&*self.task, &self.agent.budgets);
        let tokens = task.usage.input_tokens.saturating_add(task.usage.output_tokens);
        #[expect(clippy::cast_precision_loss, reason = "2^53 millionths are nine billion dollars")]
        let cost = task.usage.cost_micros as f64 / 1e6;
        let time = self.now - task.started_at;
        if task.turns >= budgets.turns {
            Some(TaskCode::TurnsExhausted)
        } else if budgets.tokens.is_some_and(|most| tokens >= most) {
            Some(TaskCode::TokensExhausted)
        } else if budgets.cost_usd.is_some_and(|most| cost >= most) {
            Some(TaskCode::CostExhausted)
        } else if time >= TimeDelta::seconds(i64::from(budgets.seconds)) {
            Some(TaskCode::TimeExhausted)
        } else {
            None
        }
    }

    /// A limit in words, with its value.
    pub(super) fn limit(&self, code: TaskCode) -> String {
        let budgets = &self.agent.budgets;
        match code {
            TaskCode::TurnsExhausted => format!("the task's {} model turns are used up", budgets.turns),
            TaskCode::ToolCallsExhausted => format!("the task's {} tool calls are used up", budgets.tool_calls),
            TaskCode::TokensExhausted => {
                format!("the task's {} tokens are used up", budgets.tokens.unwrap_or_default())
            }
            TaskCode::CostExhausted => {
                format!("the task's {} US dollars are used up", budgets.cost_usd.unwrap_or_default())
            }
            TaskCode::TimeExhausted => format!("the task's {} seconds are over", budgets.seconds),
            TaskCode::CorrectionsExhausted => "the corrections are used up".to_owned(),
            TaskCode::ModelFailed => "the model could not be asked".to_owned(),
            TaskCode::NoAnswer => "the model did not answer".to_owned(),
            TaskCode::Cancelled => "the task was cancelled".to_owned(),
            TaskCode::Internal => "Redial failed".to_owned(),
            TaskCode::Answered => "the model answered".to_owned(),
        }
    }

    pub(super) fn end_without_answer(&mut self, code: TaskCode, why: Option<&str>) {
        let message = match why {
            Some(why) => format!("{}; {why}", self.limit(code)),
            None => format!("{}; there was no last answer in time", self.limit(code)),
        };
        self.end(TaskState::Failed, code, Some(message), None);
    }
}
