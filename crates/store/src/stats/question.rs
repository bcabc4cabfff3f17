//! What `redial stats` asks for, and the answer.

use std::collections::BTreeMap;

use chrono::TimeDelta;
pub use redial_api::{GroupBy as By, ModelsGroupBy as ModelsBy};
use redial_proto::turn::model_name;

use super::tally::{AttemptSums, CallSums, Key};
use crate::Time;

/// Statistics of calls are kept for so long.
pub(super) const KEPT: TimeDelta = TimeDelta::days(400);
/// Statistics of workers, whose names change with every start, are kept for so long.
pub(super) const WORKERS_KEPT: TimeDelta = TimeDelta::days(35);

/// Returns how long figures are kept that are grouped like this.
pub const fn kept(by: By) -> TimeDelta {
    if matches!(by, By::Worker) { WORKERS_KEPT } else { KEPT }
}

#[derive(Clone, Debug)]
pub struct StatsQuestion {
    pub by: By,
    /// How to group these groups in turn.
    pub and: Option<By>,
    /// Calls that ended in the hour of this time or later.
    pub since: Time,
    /// Calls that ended before the end of the hour of this time; `None`: until now.
    pub until: Option<Time>,
    /// Only calls of this tool, or of this model's registered name.
    pub tool: Option<String>,
    pub tenant: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// A tool, a class, a model or a worker.
    Name(String),
    /// The start of an hour.
    Hour(Time),
    /// A group of a group.
    Both(Box<Group>, Box<Group>),
}

/// The figures of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupSums {
    /// Its calls by how they ended: `succeeded`, `failed`, `unknown`, `cancelled`, `refused`. None of workers.
    pub states: BTreeMap<String, u64>,
    /// Its calls; none of workers.
    pub calls: CallSums,
    /// Its attempts; only of workers.
    pub attempts: AttemptSums,
}

#[derive(Clone, Debug)]
pub struct Stats {
    /// The start of the first hour.
    pub since: Time,
    /// The figures are complete for calls that ended before this.
    pub until: Time,
    /// False if there are later calls that would take too long to count now.
    pub is_complete: bool,
    /// In no order.
    pub groups: Vec<(Group, GroupSums)>,
}

#[derive(Clone, Debug)]
pub struct ModelsQuestion {
    pub by: ModelsBy,
    /// Calls that ended in the hour of this time or later.
    pub since: Time,
    /// Calls that ended before the end of the hour of this time; `None`: until now.
    pub until: Option<Time>,
    pub model: Option<String>,
    pub tool: Option<String>,
    /// Only of tasks of this declared agent.
    pub agent: Option<String>,
}

impl GroupSums {
    pub fn add(&mut self, other: &Self) {
        for (state, calls) in &other.states {
            let all = self.states.entry(state.clone()).or_default();
            *all = all.saturating_add(*calls);
        }
        self.calls.add(&other.calls);
        self.attempts.add(&other.attempts);
    }

    pub fn ended_as(&self, state: &str) -> u64 {
        self.states.get(state).copied().unwrap_or(0)
    }
}

impl StatsQuestion {
    pub(super) fn takes(&self, tenant: &str, tool: &str) -> bool {
        self.tenant.as_deref().is_none_or(|wanted| wanted == tenant)
            && self.tool.as_deref().is_none_or(|wanted| wanted == tool)
    }

    /// Returns the group of a call; `None` if it is in none.
    pub(super) fn group_of_call(&self, key: &Key) -> Option<Group> {
        let first = Self::group(self.by, key)?;
        let Some(and) = self.and else { return Some(first) };
        Some(Group::Both(Box::new(first), Box::new(Self::group(and, key)?)))
    }

    fn group(by: By, key: &Key) -> Option<Group> {
        let [state, class, _] = &key.names;
        let name = match by {
            By::Tool => key.tool.clone(),
            By::Class if class.is_empty() => state.clone(),
            By::Class => class.clone(),
            By::Model => model_name(&key.tool)?.to_owned(),
            By::Worker => return None,
            By::Hour => return Some(Group::Hour(key.hour)),
        };
        Some(Group::Name(name))
    }
}
