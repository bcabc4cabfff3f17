//! Figures of calls, models and arguments. What is not known is `null`, never 0.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What figures are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GroupBy {
    /// The tool; model turns by their registered name.
    #[default]
    Tool,
    /// The error class, or how calls ended that have none.
    Class,
    /// The model, for model turns only.
    Model,
    /// The worker, by attempts.
    Worker,
    /// The hour in which calls ended.
    Hour,
}

/// Figures of the calls of the tenant that ended.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Statistics {
    /// The start of the first hour.
    pub since: DateTime<Utc>,
    /// The figures are complete for calls that ended before this.
    pub until: DateTime<Utc>,
    /// False if there are later calls that would take too long to count now: ask again in a few minutes.
    pub is_complete: bool,
    /// By hour from the latest on; all others from the most calls on, at most 1,000.
    pub groups: Vec<Figures>,
}

/// The figures of one group. The field that names it is the one that figures are grouped by.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// The tool; model turns by their registered name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The error class, or how calls ended that have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The start of the hour in which calls ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hour: Option<DateTime<Utc>>,
    /// Of a worker: its attempts. Else: the figures of calls.
    #[serde(flatten)]
    pub counts: Counts,
    /// Median in ms, within 10 %: of calls from submission to end, of a worker's attempts how long the tool ran. `null` if no
    /// call had an attempt.
    pub p50_ms: Option<u64>,
    /// The 95th percentile of the same.
    pub p95_ms: Option<u64>,
    /// The 99th percentile of the same.
    pub p99_ms: Option<u64>,
}

/// How many.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Counts {
    /// Calls, by how they ended.
    Calls(CallCounts),
    /// Attempts of a worker.
    Attempts(AttemptCounts),
}

/// Calls, by how they ended.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct CallCounts {
    /// All of them.
    pub calls: u64,
    /// With success.
    pub succeeded: u64,
    /// Without.
    pub failed: u64,
    /// Nobody knows how.
    pub unknown: u64,
    /// Somebody stopped them.
    pub cancelled: u64,
    /// They never ran.
    pub refused: u64,
    /// Attempts beyond the first of each call.
    pub retries: u64,
    /// Calls that a model made after a call of the same tool had failed in a way that it could correct.
    pub corrections: u64,
    /// Answers of models among them.
    pub answers: u64,
    /// Tokens that models read: `null` if it is not known of any answer; at least so many, if it is unknown of some.
    pub input_tokens: Option<u64>,
    /// Tokens that models wrote; the same holds.
    pub output_tokens: Option<u64>,
    /// Answers of which a number of tokens is not known.
    pub tokens_unknown: u64,
    /// The price of answers in US dollars; the same holds.
    pub cost_usd: Option<f64>,
    /// Answers of which the price is not known.
    pub cost_unknown: u64,
}

/// Attempts of a worker.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct AttemptCounts {
    /// All of them.
    pub attempts: u64,
    /// Without success.
    pub failed: u64,
}

impl CallCounts {
    /// Returns how many ended without success, and were not stopped.
    pub const fn bad(&self) -> u64 {
        self.failed + self.unknown + self.refused
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self::Calls(CallCounts::default())
    }
}

impl Counts {
    /// Returns the calls; none of attempts.
    pub fn calls(&self) -> CallCounts {
        match self {
            Self::Calls(calls) => *calls,
            Self::Attempts(_) => CallCounts::default(),
        }
    }
}

/// What figures of models are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelsGroupBy {
    /// The model.
    #[default]
    Model,
    /// The tool.
    Tool,
    /// The model and the tool.
    ModelAndTool,
    /// The declared agent; empty for agents that were given with their tasks.
    Agent,
    /// The hour in which calls ended.
    Hour,
    /// The day in which calls ended.
    Day,
}

/// Figures of models in the tenant's tasks.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ModelStatistics {
    /// The start of the first hour.
    pub since: DateTime<Utc>,
    /// The figures are complete for calls that ended before this.
    pub until: DateTime<Utc>,
    /// False if there are later calls that would take too long to count now.
    pub is_complete: bool,
    /// In the order of their names, at most 1,000.
    pub groups: Vec<ModelFigures>,
}

/// The figures of one group. The fields that name it are those that figures are grouped by.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ModelFigures {
    /// The start of the hour or day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime<Utc>>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The declared agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Tool calls that correct no earlier one, and ran as they were written.
    pub right_at_once: u64,
    /// Those that ran after a repair in code, which cost no turn.
    pub repaired: u64,
    /// Those that were fed back to the model.
    pub wrong: u64,
    /// Calls that were right after one turn of corrections.
    pub corrected_1: u64,
    /// After two.
    pub corrected_2: u64,
    /// After three or more.
    pub corrected_3: u64,
    /// What was wrong and is not corrected: given up, or not yet.
    pub not_corrected: u64,
    /// Turns of models that repairs in code saved: one for each call that was repaired.
    pub turns_saved: u64,
    /// Answers of models.
    pub answers: u64,
    /// Tokens that models read: `null` if it is not known of any answer; at least so many, if it is unknown of some.
    pub input_tokens: Option<u64>,
    /// Tokens that models wrote; the same holds.
    pub output_tokens: Option<u64>,
    /// Answers of which a number of tokens is not known.
    pub tokens_unknown: u64,
    /// The price of answers in US dollars; the same holds.
    pub cost_usd: Option<f64>,
    /// Answers of which the price is not known.
    pub cost_unknown: u64,
}

/// The places in the arguments of a tool, of the tenant's calls that ended in that time.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PointerList {
    /// The start of the first hour.
    pub since: DateTime<Utc>,
    /// The figures are complete for calls that ended before this.
    pub until: DateTime<Utc>,
    /// False if there are later calls that would take too long to count now.
    pub is_complete: bool,
    /// Broken rules, those of the most calls first, at most 100: where a description should be mended.
    pub errors: Vec<PointerItem>,
    /// Repairs in code, alike.
    pub repairs: Vec<PointerItem>,
}

/// One place.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PointerItem {
    /// JSON pointer; `*` stands for any index, and an empty one for the whole.
    pub pointer: String,
    /// The broken rule, or the kind of the repair.
    pub rule: String,
    /// Calls.
    pub calls: u64,
    /// The share of all broken rules, or repairs, of the tool: 0 to 1.
    pub share: f64,
}

/// A price in US dollars, of millionths.
#[expect(clippy::cast_precision_loss, reason = "below nine billion dollars every millionth is exact")]
pub fn dollars(micros: u64) -> f64 {
    micros as f64 / 1e6
}
