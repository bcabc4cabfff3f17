//! How often models were right, what they cost, and which places in arguments are corrected most.

use std::collections::BTreeMap;

use super::{
    answer::{Answered, Asked},
    question::{ModelsBy, ModelsQuestion},
    tally::{Key, Kind, ModelSums, Sums, Tally, What, day_of},
};
use crate::{StoreError, TenantStore, Time};

/// What a group of figures of models has in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelGroup {
    /// The start of the hour or day.
    pub at: Option<Time>,
    pub model: Option<String>,
    pub tool: Option<String>,
    /// The declared agent; empty for those that were given with their tasks.
    pub agent: Option<String>,
}

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
    /// `*` stands for any index.
    pub pointer: String,
    /// The broken rule, or the kind of the repair.
    pub rule: String,
    /// What happened there.
    pub what: What,
    /// In so many calls.
    pub calls: u64,
}

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
    /// Returns how often models were right in the calls of the tenant's tasks, and what they cost.
    pub async fn model_stats(&self, question: &ModelsQuestion) -> Result<ModelStats, StoreError> {
        let tenant = self.tenant().as_str();
        let by = |names: &[ModelsBy]| names.contains(&question.by);
        let apart = [
            by(&[ModelsBy::Hour, ModelsBy::Day]),
            question.tool.is_some() || by(&[ModelsBy::Tool, ModelsBy::ModelAndTool]),
            question.agent.is_some() || by(&[ModelsBy::Agent]),
            question.model.is_some() || by(&[ModelsBy::Model, ModelsBy::ModelAndTool]),
            false,
        ];
        let asked = Asked {
            kind: Kind::Model,
            tenant: Some(tenant),
            tool: question.tool.as_deref(),
            apart: Some(apart),
            since: question.since,
            until: question.until,
        };
        let add = |groups: &mut BTreeMap<ModelGroup, Sums>, tally: Tally| {
            let is_asked = |key: &Key| key.kind == Kind::Model && key.tenant == tenant && question.takes(key);
            for (key, sums) in tally.iter().filter(|(key, _)| is_asked(key)) {
                if let Some(group) = question.group(key) {
                    groups.entry(group).or_default().add(sums);
                }
            }
        };
        let (answered, groups) = self.store().tallies(asked, add).await?;
        let Answered { since, until, is_complete } = answered;
        Ok(ModelStats {
            since,
            until,
            is_complete,
            groups: groups.iter().map(|(group, sums)| (group.clone(), sums.into())).collect(),
        })
    }

    /// Returns the places in the arguments of a tool that broke a rule or were repaired in the tenant's calls.
    pub async fn places(&self, tool: &str, since: Time, until: Option<Time>) -> Result<Places, StoreError> {
        let tenant = self.tenant().as_str();
        let add = |places: &mut BTreeMap<(What, String, String), u64>, tally: Tally| {
            for (key, sums) in tally {
                if key.kind == Kind::Place && key.tenant == tenant && key.tool == tool {
                    let [what, pointer, rule] = key.names;
                    let what = if what == What::Repair.as_str() { What::Repair } else { What::Error };
                    let all = places.entry((what, pointer, rule)).or_default();
                    *all = all.saturating_add(sums.count(0));
                }
            }
        };
        let apart = Some([false, true, true, true, true]);
        let asked = Asked { kind: Kind::Place, tenant: Some(tenant), tool: Some(tool), apart, since, until };
        let (answered, places) = self.store().tallies(asked, add).await?;
        let line = |((what, pointer, rule), calls)| PlaceLine { pointer, rule, what, calls };
        let mut places: Vec<PlaceLine> = places.into_iter().map(line).collect();
        places.sort_by_key(|place| std::cmp::Reverse(place.calls));
        let Answered { since, until, is_complete } = answered;
        Ok(Places { since, until, is_complete, places })
    }
}

impl ModelsQuestion {
    fn takes(&self, key: &Key) -> bool {
        let [agent, model, _] = &key.names;
        let is = |wanted: &Option<String>, has: &str| wanted.as_deref().is_none_or(|wanted| wanted == has);
        is(&self.model, model) && is(&self.tool, &key.tool) && is(&self.agent, agent)
    }

    /// Returns the group of a key; `None` if it is in none.
    fn group(&self, key: &Key) -> Option<ModelGroup> {
        let [agent, model, _] = &key.names;
        let none = ModelGroup::default();
        let (model, tool) = (Some(model.clone()), Some(key.tool.clone()));
        Some(match self.by {
            ModelsBy::Model => ModelGroup { model, ..none },
            ModelsBy::Tool | ModelsBy::ModelAndTool if key.tool.is_empty() => return None,
            ModelsBy::Tool => ModelGroup { tool, ..none },
            ModelsBy::ModelAndTool => ModelGroup { model, tool, ..none },
            ModelsBy::Agent => ModelGroup { agent: Some(agent.clone()), ..none },
            ModelsBy::Hour => ModelGroup { at: Some(key.hour), ..none },
            ModelsBy::Day => ModelGroup { at: Some(day_of(key.hour)), ..none },
        })
    }
}
