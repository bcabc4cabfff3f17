//! What the API says of figures: `GET /v1/statistics`.

use std::collections::BTreeMap;

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use serde::Deserialize;

use crate::{
    chart::{self, Column},
    failure::Failure,
    page::{self, Visit},
    show::{self, Html},
};

/// An answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Statistics {
    pub(crate) since: DateTime<Utc>,
    pub(crate) until: DateTime<Utc>,
    #[serde(default)]
    pub(crate) is_complete: bool,
    pub(crate) groups: Vec<Group>,
}

/// The figures of a group.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Group {
    pub(crate) tool: Option<String>,
    pub(crate) class: Option<String>,
    pub(crate) hour: Option<DateTime<Utc>>,
    pub(crate) calls: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) unknown: u64,
    pub(crate) cancelled: u64,
    pub(crate) refused: u64,
    pub(crate) retries: u64,
    pub(crate) corrections: u64,
    pub(crate) p50_ms: Option<u64>,
    pub(crate) p95_ms: Option<u64>,
    pub(crate) p99_ms: Option<u64>,
}

/// Figures by this, with more conditions: `&tool=a`.
pub(crate) async fn by(visit: &Visit, by: &str, more: &str) -> Result<Statistics, Failure> {
    visit.api.get(&format!("/v1/statistics?by={by}{more}")).await
}

/// Tools that do not exist are counted under this name; their calls are on record under the names that models wrote.
pub(crate) const UNKNOWN_TOOL: &str = "(unknown tool)";

/// The address of the calls of a tool in this state; an empty state is every one but success.
pub(crate) fn calls_of(tool: &str, class: &str, state: &str) -> String {
    let (tool, class) = if tool == UNKNOWN_TOOL { ("", "unknown_tool") } else { (tool, class) };
    let not_state = if state.is_empty() { "succeeded" } else { "" };
    let conditions = [("tool", tool), ("class", class), ("state", state), ("not_state", not_state)];
    format!("/console/calls{}", page::query(conditions))
}

impl Statistics {
    /// The sum of a number of all groups.
    pub(crate) fn sum(&self, number: impl Fn(&Group) -> u64) -> u64 {
        self.groups.iter().map(number).sum()
    }

    /// The groups of groups, added up by one of their names. Durations cannot be added up.
    pub(crate) fn by_name(&self, name: fn(&mut Group) -> &mut Option<String>) -> Vec<Group> {
        let mut sums: BTreeMap<String, Group> = BTreeMap::new();
        for group in &self.groups {
            let Some(key) = name(&mut group.clone()).clone() else { continue };
            let sum = sums.entry(key.clone()).or_default();
            *name(sum) = Some(key);
            sum.calls += group.calls;
            sum.succeeded += group.succeeded;
            sum.failed += group.failed;
            sum.unknown += group.unknown;
            sum.cancelled += group.cancelled;
            sum.refused += group.refused;
        }
        sums.into_values().collect()
    }

    /// A group for each hour, also for those in which nothing ended.
    fn hours(&self) -> Vec<(DateTime<Utc>, Option<&Group>)> {
        let hour = TimeDelta::hours(1);
        let Ok(mut at) = self.since.duration_trunc(hour) else { return Vec::new() };
        let mut hours = Vec::new();
        while at <= self.until && hours.len() < 200 {
            hours.push((at, self.groups.iter().find(|group| group.hour == Some(at))));
            at += hour;
        }
        hours
    }

    /// Ends by hour: with success, failed, unknown, never run, stopped.
    pub(crate) fn ends(&self) -> Html {
        let series = [("succeeded", "c4"), ("failed", "c1"), ("unknown", "c3"), ("refused", "c2"), ("cancelled", "c5")];
        let column = |(hour, group): (DateTime<Utc>, Option<&Group>)| {
            let parts =
                group.map_or([0; 5], |all| [all.succeeded, all.failed, all.unknown, all.refused, all.cancelled]);
            Column { label: hour.format("%H:%M").to_string(), parts: parts.to_vec() }
        };
        let columns: Vec<Column> = self.hours().into_iter().map(column).collect();
        chart::columns("Calls that ended in each hour, by how", &series, &columns)
    }

    /// How long calls took, by hour.
    pub(crate) fn durations(&self) -> Html {
        let hours = self.hours();
        let names: Vec<String> = hours.iter().map(|(hour, _)| hour.format("%H:%M").to_string()).collect();
        let line =
            |of: fn(&Group) -> Option<u64>| hours.iter().map(|(_, group)| group.and_then(of)).collect::<Vec<_>>();
        let mut series = vec![
            ("half took at most", "l0", line(|group| group.p50_ms)),
            ("95 % at most", "l1", line(|group| group.p95_ms)),
        ];
        let p99 = line(|group| group.p99_ms);
        if p99.iter().any(Option::is_some) {
            series.push(("99 % at most", "l2", p99));
        }
        chart::lines("How long calls took, by hour", &series, &names, ms)
    }
}

fn ms(ms: u64) -> String {
    show::span(i64::try_from(ms).unwrap_or(i64::MAX))
}

impl Group {
    /// How the calls ended, as one bar.
    pub(crate) fn meter(&self) -> Html {
        chart::meter(&[
            ("succeeded", self.succeeded, "c4"),
            ("failed", self.failed, "c1"),
            ("unknown", self.unknown, "c3"),
            ("refused", self.refused, "c2"),
            ("cancelled", self.cancelled, "c5"),
        ])
    }

    /// What did not end with success.
    pub(crate) const fn bad(&self) -> u64 {
        self.failed + self.unknown + self.refused
    }

    /// A duration.
    pub(crate) fn took(value: &Option<u64>) -> String {
        value.map_or_else(|| "\u{2013}".to_owned(), |value| format!("\u{2248} {}", ms(value)))
    }
}
