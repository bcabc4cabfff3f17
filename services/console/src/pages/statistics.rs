//! What the API says of figures: `GET /v1/statistics`.

use std::collections::BTreeMap;

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use redial_api::{CallCounts, Counts, Figures, Statistics};

use crate::{
    chart::{self, Column},
    failure::Failure,
    page::{self, Visit},
    show::{self, Html},
};

/// Asks for figures by this, with more conditions: `&tool=a`.
pub(crate) async fn by(visit: &Visit, by: &str, more: &str) -> Result<Statistics, Failure> {
    visit.api.get(&format!("/v1/statistics?by={by}{more}")).await
}

/// Tools that do not exist are counted under this name; their calls are on record under the names that models wrote.
pub(crate) const UNKNOWN_TOOL: &str = "(unknown tool)";

/// Returns the address of the calls of a tool in this state; an empty state is every one but success.
pub(crate) fn calls_of(tool: &str, class: &str, state: &str) -> String {
    let (tool, class) = if tool == UNKNOWN_TOOL { ("", "unknown_tool") } else { (tool, class) };
    let not_state = if state.is_empty() { "succeeded" } else { "" };
    let conditions = [("tool", tool), ("class", class), ("state", state), ("not_state", not_state)];
    format!("/console/calls{}", page::query(conditions))
}

/// Sums a number of all groups.
pub(crate) fn sum(figures: &Statistics, number: impl Fn(&CallCounts) -> u64) -> u64 {
    figures.groups.iter().map(|group| number(&group.counts.calls())).sum()
}

/// Adds up groups of groups by one of their names. Durations cannot be added up.
pub(crate) fn by_name(figures: &Statistics, name: fn(&mut Figures) -> &mut Option<String>) -> Vec<Figures> {
    let mut sums: BTreeMap<String, CallCounts> = BTreeMap::new();
    for group in &figures.groups {
        let Some(key) = name(&mut group.clone()).clone() else { continue };
        let (sum, counts) = (sums.entry(key).or_default(), group.counts.calls());
        sum.calls += counts.calls;
        sum.succeeded += counts.succeeded;
        sum.failed += counts.failed;
        sum.unknown += counts.unknown;
        sum.cancelled += counts.cancelled;
        sum.refused += counts.refused;
    }
    let named = |(key, sum)| {
        let mut group = Figures { counts: Counts::Calls(sum), ..Figures::default() };
        *name(&mut group) = Some(key);
        group
    };
    sums.into_iter().map(named).collect()
}

/// Returns a group for each hour, also for those in which nothing ended.
fn hours(figures: &Statistics) -> Vec<(DateTime<Utc>, Option<&Figures>)> {
    let hour = TimeDelta::hours(1);
    let Ok(mut at) = figures.since.duration_trunc(hour) else { return Vec::new() };
    let mut hours = Vec::new();
    while at <= figures.until && hours.len() < 200 {
        hours.push((at, figures.groups.iter().find(|group| group.hour == Some(at))));
        at += hour;
    }
    hours
}

/// Draws ends by hour: with success, failed, unknown, never run, stopped.
pub(crate) fn ends(figures: &Statistics) -> Html {
    let column = |(hour, group): (DateTime<Utc>, Option<&Figures>)| {
        let parts = group.map_or([0; 5], |group| ends_of(&group.counts.calls()).map(|(_, calls, _)| calls));
        Column { label: hour.format("%H:%M").to_string(), parts: parts.to_vec() }
    };
    let columns: Vec<Column> = hours(figures).into_iter().map(column).collect();
    let series = ends_of(&CallCounts::default()).map(|(name, _, colour)| (name, colour));
    chart::columns("Calls that ended in each hour, by how", &series, &columns)
}

/// Returns how calls ended: in words, how many, and its colour.
const fn ends_of(calls: &CallCounts) -> [(&'static str, u64, &'static str); 5] {
    [
        ("succeeded", calls.succeeded, "c4"),
        ("failed", calls.failed, "c1"),
        ("unknown", calls.unknown, "c3"),
        ("refused", calls.refused, "c2"),
        ("cancelled", calls.cancelled, "c5"),
    ]
}

/// Draws how long calls took, by hour.
pub(crate) fn durations(figures: &Statistics) -> Html {
    let hours = hours(figures);
    let names: Vec<String> = hours.iter().map(|(hour, _)| hour.format("%H:%M").to_string()).collect();
    let line = |of: fn(&Figures) -> Option<u64>| hours.iter().map(|(_, group)| group.and_then(of)).collect::<Vec<_>>();
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

fn ms(ms: u64) -> String {
    show::span(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// Draws how the calls of a group ended, as one bar.
pub(crate) fn meter(group: &Figures) -> Html {
    chart::meter(&ends_of(&group.counts.calls()))
}

pub(crate) fn took(value: &Option<u64>) -> String {
    value.map_or_else(|| "\u{2013}".to_owned(), |value| format!("\u{2248} {}", ms(value)))
}
