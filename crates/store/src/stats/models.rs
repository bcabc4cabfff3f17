//! How often models were right, what they cost, and which places in arguments are corrected most.

use std::collections::BTreeMap;

use super::{
    answer::{Answered, Asked, Part},
    question::{ModelsBy, ModelsQuestion},
    tally::{ModelKey, ModelSums, PlaceKey, Tally, What, day_of},
};
use crate::{StoreError, TenantStore, Time};

/// What a group of figures of models has in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelGroup {
    /// The start of the hour or day.
    pub at: Option<Time>,
    /// The model.
    pub model: Option<String>,
    /// The tool.
    pub tool: Option<String>,
    /// The declared agent; empty for those that were given with their tasks.
    pub agent: Option<String>,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct ModelStats {
    /// The start of the first hour.
    pub since: Time,
    /// The figures are complete for calls that ended before this.
    pub until: Time,
    /// False if there are later calls that would take too long to count now.
    pub is_complete: bool,
    /// In the order of their names.
    pub groups: Vec<(ModelGroup, ModelSums)>,
}

/// A place in the arguments of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceLine {
    /// JSON pointer; `*` stands for any index.
    pub pointer: String,
    /// The broken rule, or the kind of the repair.
    pub rule: String,
    /// What happened there.
    pub what: What,
    /// In so many calls.
    pub calls: u64,
}

/// The places of a tool.
#[derive(Clone, Debug)]
pub struct Places {
    /// The start of the first hour.
    pub since: Time,
    /// The figures are complete for calls that ended before this.
    pub until: Time,
    /// False if there are later calls that would take too long to count now.
    pub is_complete: bool,
    /// Those with the most calls first.
    pub places: Vec<PlaceLine>,
}

impl TenantStore<'_> {
    /// How often models were right in the calls of the tenant's tasks, and what they cost.
    pub async fn model_stats(&self, question: &ModelsQuestion) -> Result<ModelStats, StoreError> {
        let tenant = self.tenant().as_str();
        let asked = Asked { tenant: Some(tenant), tool: None, since: question.since, until: question.until };
        let add = |groups: &mut BTreeMap<ModelGroup, ModelSums>, tally: Tally| {
            for (key, sums) in tally.models.iter().filter(|(key, _)| key.tenant == tenant && question.takes(key)) {
                if let Some(group) = question.group(key) {
                    groups.entry(group).or_default().add(sums);
                }
            }
        };
        let (answered, groups) = self.store().tallies(asked, Part::Models(question), add).await?;
        let Answered { since, until, is_complete } = answered;
        Ok(ModelStats { since, until, is_complete, groups: groups.into_iter().collect() })
    }

    /// The places in the arguments of a tool that broke a rule or were repaired in the tenant's calls.
    pub async fn places(&self, tool: &str, since: Time, until: Option<Time>) -> Result<Places, StoreError> {
        let tenant = self.tenant().as_str();
        let add = |places: &mut BTreeMap<(What, String, String), u64>, tally: Tally| {
            for (key, calls) in tally.places {
                if key.tenant == tenant && key.tool == tool {
                    let PlaceKey { what, pointer, rule, .. } = key;
                    let all = places.entry((what, pointer, rule)).or_default();
                    *all = all.saturating_add(calls);
                }
            }
        };
        let asked = Asked { tenant: Some(tenant), tool: None, since, until };
        let (answered, places) = self.store().tallies(asked, Part::Places(tool), add).await?;
        let line = |((what, pointer, rule), calls)| PlaceLine { pointer, rule, what, calls };
        let mut places: Vec<PlaceLine> = places.into_iter().map(line).collect();
        places.sort_by_key(|place| std::cmp::Reverse(place.calls));
        let Answered { since, until, is_complete } = answered;
        Ok(Places { since, until, is_complete, places })
    }
}

impl ModelsQuestion {
    fn takes(&self, key: &ModelKey) -> bool {
        let is = |wanted: &Option<String>, has: &str| wanted.as_deref().is_none_or(|wanted| wanted == has);
        is(&self.model, &key.model) && is(&self.tool, &key.tool) && is(&self.agent, &key.agent)
    }

    /// The group of a key; `None` if it is in none.
    fn group(&self, key: &ModelKey) -> Option<ModelGroup> {
        let none = ModelGroup::default();
        let (model, tool) = (Some(key.model.clone()), Some(key.tool.clone()));
        Some(match self.by {
            ModelsBy::Model => ModelGroup { model, ..none },
            ModelsBy::Tool | ModelsBy::ModelAndTool if key.tool.is_empty() => return None,
            ModelsBy::Tool => ModelGroup { tool, ..none },
            ModelsBy::ModelAndTool => ModelGroup { model, tool, ..none },
            ModelsBy::Agent => ModelGroup { agent: Some(key.agent.clone()), ..none },
            ModelsBy::Hour => ModelGroup { at: Some(key.hour), ..none },
            ModelsBy::Day => ModelGroup { at: Some(day_of(key.hour)), ..none },
        })
    }
}
