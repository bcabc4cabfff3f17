//! `/v1/statistics`.

mod models;

use chrono::{DateTime, Utc};
use redial_api::{GroupBy, ModelStatistics, Statistics};
use redial_proto::{UserRole, turn};
use redial_store::stats::StatsQuestion;
use redial_views::{figures, sort_groups};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    bounds::since,
    endpoint::Endpoint,
    extract::Query,
    gateway::Api,
    problem::{JsonResult, Problem},
};

const GROUPS: usize = 1_000;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/v1/statistics", statistics)
            .about(
                "statistics",
                "get_statistics",
                "Figures of the calls that ended, by tool, class, model, worker or hour",
            )
            .roles(&[UserRole::Read])
            .query::<StatisticsQuery>()
            .answer::<Statistics>(200, "Figures."),
        Endpoint::get("/v1/statistics/models", models::models)
            .about(
                "statistics",
                "get_model_statistics",
                "How often the calls of models were right, what was corrected, and what it cost",
            )
            .roles(&[UserRole::Read])
            .query::<models::ModelsQueryParameters>()
            .answer::<ModelStatistics>(200, "Figures of the calls and turns of tasks."),
    ]
}

/// Which figures.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatisticsQuery {
    /// What to group by. Default: the tool.
    #[serde(default)]
    by: GroupBy,
    /// What to group these groups by in turn; workers go with nothing else.
    and: Option<GroupBy>,
    /// Calls that ended in the hour of this time or later. Default: 24 hours ago.
    since: Option<DateTime<Utc>>,
    /// Calls that ended before the end of the hour of this time. Default: until now.
    until: Option<DateTime<Utc>>,
    /// Calls of this tool.
    tool: Option<String>,
    /// Turns of this model.
    model: Option<String>,
}

async fn statistics(Api { gateway, who }: Api, Query(query): Query<StatisticsQuery>) -> JsonResult<Statistics> {
    if query.tool.is_some() && query.model.is_some() {
        return Err(Problem::invalid("tool and model are both set; allowed: one of them"));
    }
    let since = since(query.since, query.until)?;
    let (by, and) = (query.by, query.and);
    if and.is_some() && (by == GroupBy::Worker || and == Some(GroupBy::Worker) || and == Some(by)) {
        return Err(Problem::invalid(
            "and is of another kind than by; allowed: two different of tool, class, model and hour",
        ));
    }
    let tool = query.tool.or_else(|| query.model.as_deref().map(turn::tool_name));
    let question = StatsQuestion { by, and, since, until: query.until, tool, tenant: None };
    let _share = gateway.long_read(&who).await?;
    let mut stats = gateway.store.of(&who.tenant).stats(&question).await?;
    sort_groups(&mut stats.groups);
    let groups = stats.groups.iter().take(GROUPS).map(|(group, sums)| figures(by, and, group, sums)).collect();
    let (since, until, is_complete) = (stats.since, stats.until, stats.is_complete);
    Ok(axum::Json(Statistics { since, until, is_complete, groups }))
}
