//! How often the calls of models were right, what was corrected, and what it cost.

use chrono::{DateTime, Utc};
use redial_api::{ModelFigures, ModelStatistics, ModelsGroupBy, dollars};
use redial_store::stats::{ModelGroup, ModelSums, ModelsQuestion, UsageSums};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{bounds::since, extract::Query, gateway::Api, problem::JsonResult};

const GROUPS: usize = 1_000;

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

pub(super) async fn models(
    Api { gateway, who }: Api,
    Query(query): Query<ModelsQueryParameters>,
) -> JsonResult<ModelStatistics> {
    let since = since(query.since, query.until)?;
    let ModelsQueryParameters { by, until, model, tool, agent, .. } = query;
    let question = ModelsQuestion { by, since, until, model, tool, agent };
    let _share = gateway.long_read(&who).await?;
    let stats = gateway.store.of(&who.tenant).model_stats(&question).await?;
    // Of hours and days the latest.
    let beyond = stats.groups.len().saturating_sub(GROUPS);
    let groups = stats.groups.into_iter().skip(beyond).map(|(group, sums)| figures(group, &sums)).collect();
    Ok(axum::Json(ModelStatistics { since: stats.since, until: stats.until, is_complete: stats.is_complete, groups }))
}

fn figures(group: ModelGroup, sums: &ModelSums) -> ModelFigures {
    let ModelGroup { at, model, tool, agent } = group;
    let [corrected_1, corrected_2, corrected_3] = sums.corrected;
    let UsageSums { answers, input_tokens, output_tokens, cost_micros, tokens_unknown, cost_unknown } = sums.usage;
    let known = |sum: u64, unknown: u64| (answers > unknown || sum > 0).then_some(sum);
    ModelFigures {
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
        cost_usd: known(cost_micros, cost_unknown).map(dollars),
        cost_unknown,
    }
}
