//! How often the calls of models were right, what was corrected, and what it cost.

use chrono::{DateTime, Utc};
use redial_store::stats::{ModelGroup, ModelSums, ModelsBy, ModelsQuestion, UsageSums};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{bounds::since, extract::Query, gateway::Api, problem::JsonResult};

/// Groups of an answer at most.
const GROUPS: usize = 1_000;

/// What figures of models are grouped by.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ModelsGroupBy {
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

/// Which figures.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelsQueryParameters {
    /// What to group by. Default: the model.
    #[serde(default)]
    by: ModelsGroupBy,
    /// Calls that ended in the hour of this time or later. Default: 24 hours ago.
    since: Option<DateTime<Utc>>,
    /// Calls that ended before the end of the hour of this time. Default: until now.
    until: Option<DateTime<Utc>>,
    /// Only of this model.
    model: Option<String>,
    /// Only calls of this tool.
    tool: Option<String>,
    /// Only of tasks of this declared agent.
    agent: Option<String>,
}

/// Figures of models in the tenant's tasks.
#[derive(Serialize, JsonSchema)]
pub(super) struct ModelStatistics {
    /// The start of the first hour.
    since: DateTime<Utc>,
    /// The figures are complete for calls that ended before this.
    until: DateTime<Utc>,
    /// False if there are later calls that would take too long to count now.
    is_complete: bool,
    /// In the order of their names, at most 1,000.
    groups: Vec<ModelFigures>,
}

/// The figures of one group. The fields that name it are those that figures are grouped by.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ModelFigures {
    /// The start of the hour or day.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<DateTime<Utc>>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The declared agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// Tool calls that correct no earlier one, and ran as they were written.
    right_at_once: u64,
    /// Those that ran after a repair in code, which cost no turn.
    repaired: u64,
    /// Those that were fed back to the model.
    wrong: u64,
    /// Calls that were right after one turn of corrections.
    corrected_1: u64,
    /// After two.
    corrected_2: u64,
    /// After three or more.
    corrected_3: u64,
    /// What was wrong and is not corrected: given up, or not yet.
    not_corrected: u64,
    /// Turns of models that repairs in code saved: one for each call that was repaired.
    turns_saved: u64,
    /// Answers of models.
    answers: u64,
    /// Tokens that models read: `null` if it is not known of any answer; at least so many, if it is unknown of some.
    input_tokens: Option<u64>,
    /// Tokens that models wrote; the same holds.
    output_tokens: Option<u64>,
    /// Answers of which a number of tokens is not known.
    tokens_unknown: u64,
    /// The price of answers in US dollars; the same holds.
    cost_usd: Option<f64>,
    /// Answers of which the price is not known.
    cost_unknown: u64,
}

impl ModelFigures {
    pub(crate) fn new(group: ModelGroup, sums: &ModelSums) -> Self {
        let ModelGroup { at, model, tool, agent } = group;
        let [corrected_1, corrected_2, corrected_3] = sums.corrected;
        let UsageSums { answers, input_tokens, output_tokens, cost_micros, tokens_unknown, cost_unknown } = sums.usage;
        let known = |sum: u64, unknown: u64| (answers > unknown || sum > 0).then_some(sum);
        Self {
            at,
            model,
            tool,
            agent,
            right_at_once: sums.right_at_once,
            repaired: sums.repaired,
            wrong: sums.wrong,
            corrected_1,
            corrected_2,
            corrected_3,
            not_corrected: sums.wrong.saturating_sub(corrected_1 + corrected_2 + corrected_3),
            turns_saved: sums.repaired,
            answers,
            input_tokens: known(input_tokens, tokens_unknown),
            output_tokens: known(output_tokens, tokens_unknown),
            tokens_unknown,
            cost_usd: known(cost_micros, cost_unknown).map(redial_views::dollars),
            cost_unknown,
        }
    }
}

pub(super) async fn models(
    Api { gateway, who }: Api,
    Query(query): Query<ModelsQueryParameters>,
) -> JsonResult<ModelStatistics> {
    let since = since(query.since, query.until)?;
    let by = match query.by {
        ModelsGroupBy::Model => ModelsBy::Model,
        ModelsGroupBy::Tool => ModelsBy::Tool,
        ModelsGroupBy::ModelAndTool => ModelsBy::ModelAndTool,
        ModelsGroupBy::Agent => ModelsBy::Agent,
        ModelsGroupBy::Hour => ModelsBy::Hour,
        ModelsGroupBy::Day => ModelsBy::Day,
    };
    let ModelsQueryParameters { until, model, tool, agent, .. } = query;
    let question = ModelsQuestion { by, since, until, model, tool, agent };
    let _share = gateway.long_read(&who).await?;
    let stats = gateway.store.of(&who.tenant).model_stats(&question).await?;
    // Of hours and days the latest.
    let beyond = stats.groups.len().saturating_sub(GROUPS);
    let groups = stats.groups.into_iter().skip(beyond).map(|(group, sums)| ModelFigures::new(group, &sums)).collect();
    Ok(axum::Json(ModelStatistics { since: stats.since, until: stats.until, is_complete: stats.is_complete, groups }))
}
