//! `/console/models`: the scoreboard of self-correction, and what it cost.

use axum::Router;
use chrono::{TimeDelta, Utc};
use redial_api::{ModelFigures, ModelStatistics};

use crate::{
    chart::{self, Column},
    console::Console,
    failure::Failure,
    filter::Filter,
    page::{self, Shell, Visiting},
    show::{self, Html},
};

pub(crate) const PATH: &str = "/console/models";

pub(super) fn router() -> Router<Console> {
    Router::new().route(PATH, page::of(models))
}

/// The parts of a bar: what they are called, and their colour.
const PARTS: [(&str, &str); 5] =
    [("right at once", "c4"), ("repaired for nothing", "c0"), ("corrected", "c2"), ("not corrected", "c1"), ("", "")];

/// Counts intentions: calls that correct no earlier one.
pub(crate) const fn intentions(group: &ModelFigures) -> u64 {
    group.right_at_once + group.repaired + group.wrong
}

pub(crate) const fn corrected(group: &ModelFigures) -> u64 {
    group.corrected_1 + group.corrected_2 + group.corrected_3
}

fn parts(group: &ModelFigures) -> [u64; 4] {
    // What a model writes after a name that does not exist corrects it under another name.
    let corrected = corrected(group).min(group.wrong);
    [group.right_at_once, group.repaired, corrected, group.wrong - corrected]
}

/// Draws how intentions went, as one bar.
pub(crate) fn meter(group: &ModelFigures) -> Html {
    let parts: Vec<(&str, u64, &str)> =
        PARTS.iter().zip(parts(group)).map(|((name, colour), part)| (*name, part, *colour)).collect();
    chart::meter(&parts)
}

pub(crate) fn share_right(group: &ModelFigures) -> String {
    show::percent(group.right_at_once + group.repaired, intentions(group))
}

/// Writes the known cost; at least so much if some of it is unknown.
pub(crate) fn cost(group: &ModelFigures) -> String {
    match group.cost_usd {
        None if group.answers == 0 => "\u{2013}".to_owned(),
        None => "unknown".to_owned(),
        Some(cost) => {
            let least = if group.cost_unknown > 0 { "\u{2265} " } else { "" };
            if cost > 0.0 && cost < 0.01 { format!("{least}${cost:.6}") } else { format!("{least}${cost:.2}") }
        }
    }
}

pub(crate) fn tokens(group: &ModelFigures, tokens: &Option<u64>) -> String {
    let least = if group.tokens_unknown > 0 { "\u{2265} " } else { "" };
    match tokens {
        None if group.answers == 0 => "\u{2013}".to_owned(),
        None => "unknown".to_owned(),
        Some(tokens) => format!("{least}{}", show::count(tokens)),
    }
}

pub(crate) fn agent_name(group: &ModelFigures) -> &str {
    group.agent.as_deref().filter(|agent| !agent.is_empty()).unwrap_or("agents given with their tasks")
}

#[derive(askama::Template)]
#[template(path = "models.html")]
struct Page {
    shell: Shell,
    days: u32,
    models: ModelStatistics,
    pairs: ModelStatistics,
    agents: ModelStatistics,
    trend: ModelStatistics,
}

/// The times that a visitor chooses from, in days.
const DAYS: [u32; 4] = [1, 7, 30, 90];

async fn models(visit: Visiting) -> Result<Page, Failure> {
    let filter = Filter::of(&visit.here);
    let days = filter.get("days").parse().ok().filter(|days| DAYS.contains(days)).unwrap_or(7);
    let since = (Utc::now() - TimeDelta::days(i64::from(days))).format("%Y-%m-%dT%H:00:00Z");
    let ask = |by: &'static str| format!("/v1/statistics/models?by={by}&since={since}");
    let trend = if days <= 1 { "hour" } else { "day" };
    let (by_model, by_both, by_agent, by_time) = (ask("model"), ask("model_and_tool"), ask("agent"), ask(trend));
    let (mut models, pairs, agents, trend): (ModelStatistics, _, _, _) = tokio::try_join!(
        visit.api.get(&by_model),
        visit.api.get(&by_both),
        visit.api.get(&by_agent),
        visit.api.get(&by_time),
    )?;
    models.groups.sort_by_key(|group| std::cmp::Reverse((group.not_corrected, group.wrong)));
    Ok(Page { models, pairs, agents, trend, shell: visit.frame("Models").again(30), days })
}

impl Page {
    fn times(&self) -> Vec<(u32, bool)> {
        DAYS.iter().map(|days| (*days, *days == self.days)).collect()
    }

    fn saved(&self) -> u64 {
        self.models.groups.iter().map(|group| group.turns_saved).sum()
    }

    fn all(&self) -> ModelFigures {
        let mut all = ModelFigures::default();
        for group in &self.models.groups {
            all.right_at_once += group.right_at_once;
            all.repaired += group.repaired;
            all.wrong += group.wrong;
            all.corrected_1 += group.corrected_1;
            all.corrected_2 += group.corrected_2;
            all.corrected_3 += group.corrected_3;
            all.not_corrected += group.not_corrected;
        }
        all
    }

    fn chart(&self) -> Html {
        let hourly = self.days <= 1;
        let form = if hourly { "%H:%M" } else { "%m-%d" };
        let column = |group: &ModelFigures| Column {
            label: group.at.map(|at| at.format(form).to_string()).unwrap_or_default(),
            parts: parts(group).to_vec(),
        };
        let columns: Vec<Column> = self.trend.groups.iter().map(column).collect();
        chart::columns("How tool calls of models went, over time", &PARTS[..4], &columns)
    }

    /// Returns pairs of model and tool, those with the most that was wrong first.
    fn worst(&self) -> Vec<&ModelFigures> {
        let mut pairs: Vec<&ModelFigures> = self.pairs.groups.iter().collect();
        pairs.sort_by_key(|pair| std::cmp::Reverse((pair.wrong, intentions(pair))));
        pairs.truncate(100);
        pairs
    }
}
