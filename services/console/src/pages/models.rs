//! `/console/models`: the scoreboard of self-correction, and what it cost.

use axum::Router;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

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

/// `GET /v1/statistics/models`.
#[derive(Debug, Deserialize)]
pub(crate) struct ModelStatistics {
    pub(crate) until: DateTime<Utc>,
    #[serde(default)]
    pub(crate) is_complete: bool,
    pub(crate) groups: Vec<ModelGroup>,
}

/// The figures of a group.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ModelGroup {
    pub(crate) at: Option<DateTime<Utc>>,
    pub(crate) model: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) right_at_once: u64,
    pub(crate) repaired: u64,
    pub(crate) wrong: u64,
    pub(crate) corrected_1: u64,
    pub(crate) corrected_2: u64,
    pub(crate) corrected_3: u64,
    pub(crate) not_corrected: u64,
    pub(crate) turns_saved: u64,
    pub(crate) answers: u64,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) tokens_unknown: u64,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) cost_unknown: u64,
}

/// The parts of a bar: what they are called, and their colour.
const PARTS: [(&str, &str); 5] =
    [("right at once", "c4"), ("repaired for nothing", "c0"), ("corrected", "c2"), ("not corrected", "c1"), ("", "")];

impl ModelGroup {
    /// Intentions: calls that correct no earlier one.
    pub(crate) const fn intentions(&self) -> u64 {
        self.right_at_once + self.repaired + self.wrong
    }

    pub(crate) const fn corrected(&self) -> u64 {
        self.corrected_1 + self.corrected_2 + self.corrected_3
    }

    fn parts(&self) -> [u64; 4] {
        // What a model writes after a name that does not exist corrects it under another name.
        let corrected = self.corrected().min(self.wrong);
        [self.right_at_once, self.repaired, corrected, self.wrong - corrected]
    }

    /// How intentions went, as one bar.
    pub(crate) fn meter(&self) -> Html {
        let parts: Vec<(&str, u64, &str)> =
            PARTS.iter().zip(self.parts()).map(|((name, colour), part)| (*name, part, *colour)).collect();
        chart::meter(&parts)
    }

    pub(crate) fn share_right(&self) -> String {
        show::percent(self.right_at_once + self.repaired, self.intentions())
    }

    /// Known cost; at least so much if some of it is unknown.
    pub(crate) fn cost(&self) -> String {
        match self.cost_usd {
            None if self.answers == 0 => "\u{2013}".to_owned(),
            None => "unknown".to_owned(),
            Some(cost) => {
                let least = if self.cost_unknown > 0 { "\u{2265} " } else { "" };
                if cost > 0.0 && cost < 0.01 { format!("{least}${cost:.6}") } else { format!("{least}${cost:.2}") }
            }
        }
    }

    pub(crate) fn tokens(&self, tokens: &Option<u64>) -> String {
        let least = if self.tokens_unknown > 0 { "\u{2265} " } else { "" };
        match tokens {
            None if self.answers == 0 => "\u{2013}".to_owned(),
            None => "unknown".to_owned(),
            Some(tokens) => format!("{least}{}", show::count(tokens)),
        }
    }

    pub(crate) fn agent_name(&self) -> &str {
        self.agent.as_deref().filter(|agent| !agent.is_empty()).unwrap_or("agents given with their tasks")
    }
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

    fn all(&self) -> ModelGroup {
        let mut all = ModelGroup::default();
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
        let column = |group: &ModelGroup| Column {
            label: group.at.map(|at| at.format(form).to_string()).unwrap_or_default(),
            parts: group.parts().to_vec(),
        };
        let columns: Vec<Column> = self.trend.groups.iter().map(column).collect();
        chart::columns("How tool calls of models went, over time", &PARTS[..4], &columns)
    }

    /// Pairs of model and tool, those with the most that was wrong first.
    fn worst(&self) -> Vec<&ModelGroup> {
        let mut pairs: Vec<&ModelGroup> = self.pairs.groups.iter().collect();
        pairs.sort_by_key(|pair| std::cmp::Reverse((pair.wrong, pair.intentions())));
        pairs.truncate(100);
        pairs
    }
}
