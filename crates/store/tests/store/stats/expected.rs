//! The same figures, counted from the values in the plainest way.

use std::collections::BTreeMap;

use chrono::{DurationRound, TimeDelta};
use redial_proto::ErrorClass;
use redial_store::stats::{By, Group, GroupSums, RELATIVE_ERROR, StatsQuestion};
use serde_json::Value;

use super::made::Made;

/// What can be compared exactly: states, calls, attempts, retries, corrections, tokens and cost; and the durations.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plain {
    pub(super) counts: BTreeMap<String, u64>,
    durations: Vec<u64>,
}

fn groups_of(made: &Made, by: By) -> Vec<(Group, bool)> {
    let name = |name: &str| Group::Name(name.to_owned());
    let tool = if made.class == Some(ErrorClass::UnknownTool) { "(unknown tool)" } else { &made.tool };
    match by {
        By::Tool => vec![(name(tool), true)],
        By::Class => vec![(name(made.class.map_or(made.state, ErrorClass::as_str)), true)],
        By::Model => tool.strip_prefix("model-").map(|model| (name(model), true)).into_iter().collect(),
        By::Hour => vec![(Group::Hour(made.finished_at.duration_trunc(TimeDelta::hours(1)).unwrap()), true)],
        By::Worker => made.attempts.iter().map(|attempt| (name(&attempt.worker), false)).collect(),
    }
}

/// Counts calls, without corrections.
pub(super) fn count(calls: &[Made], question: &StatsQuestion) -> BTreeMap<Group, Plain> {
    let mut groups = BTreeMap::<Group, Plain>::new();
    let end = question.until;
    let wanted = calls.iter().filter(|made| {
        let tool = if made.class == Some(ErrorClass::UnknownTool) { "(unknown tool)" } else { &made.tool };
        question.tool.as_deref().is_none_or(|wanted| wanted == tool)
            && question.tenant.as_deref().is_none_or(|wanted| wanted == made.tenant)
            && made.finished_at >= question.since
            && end.is_none_or(|end| made.finished_at < end)
    });
    for made in wanted {
        let groups_of = groups_of(made, question.by);
        for (n, (group, of_calls)) in groups_of.into_iter().enumerate() {
            let plain = groups.entry(group).or_default();
            let mut add = |what: &str, number: u64| *plain.counts.entry(what.to_owned()).or_default() += number;
            if of_calls {
                add(made.state, 1);
                add("calls", 1);
                add("retries", u64::try_from(made.attempts.len()).unwrap().saturating_sub(1));
                if made.tool.starts_with("model-") && made.state == "succeeded" {
                    let reply: Value =
                        serde_json::from_str(&made.reply.clone().unwrap().replace("\\ud800", "")).unwrap();
                    let usage = &reply["usage"];
                    let told = |field: &str| usage[field].as_u64().unwrap_or(0);
                    add("answers", 1);
                    add("cost", told("cost_micros"));
                    add("cost unknown", usage["cost_micros"].as_u64().is_none().into());
                    add("input", told("input_tokens"));
                    let tokens = usage["input_tokens"].is_u64() && usage["output_tokens"].is_u64();
                    add("tokens unknown", u64::from(!tokens));
                }
                if !made.attempts.is_empty() {
                    plain.durations.push(u64::try_from(made.total_ms).unwrap());
                }
            } else {
                let attempt = &made.attempts[n];
                add("attempts", 1);
                add("failed attempts", attempt.class.is_some().into());
                plain.durations.extend(attempt.duration_ms.map(|ms| u64::try_from(ms).unwrap()));
            }
        }
    }
    for plain in groups.values_mut() {
        plain.counts.retain(|_, number| *number > 0);
    }
    groups
}

/// Fails unless the store's figures are these.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
pub(super) fn assert_same(told: &[(Group, GroupSums)], mut wanted: BTreeMap<Group, Plain>, what: &str) {
    for (group, sums) in told {
        let mut plain = wanted.remove(group).unwrap_or_else(|| panic!("{what}: {group:?} {sums:?}"));
        let mut counts = sums.states.clone();
        let usage = sums.calls.usage;
        for (name, number) in [
            ("calls", sums.calls.calls),
            ("retries", sums.calls.retries),
            ("answers", usage.answers),
            ("cost", usage.cost_micros),
            ("cost unknown", usage.cost_unknown),
            ("input", usage.input_tokens),
            ("tokens unknown", usage.tokens_unknown),
            ("attempts", sums.attempts.attempts),
            ("failed attempts", sums.attempts.failed),
        ] {
            if number > 0 {
                counts.insert(name.to_owned(), number);
            }
        }
        assert_eq!(counts, plain.counts, "{what}: {group:?}");
        let durations = if sums.attempts.attempts > 0 { &sums.attempts.durations } else { &sums.calls.durations };
        assert_eq!(durations.count(), u64::try_from(plain.durations.len()).unwrap(), "{what}: {group:?}");
        plain.durations.sort_unstable();
        let median = plain.durations.len().div_ceil(2).checked_sub(1).map(|rank| plain.durations[rank] as f64);
        let told = durations.quantile(0.5).map(|ms| ms as f64);
        let near = |(told, exact): (f64, f64)| (told - exact).abs() <= exact * RELATIVE_ERROR + 0.5;
        assert!(told.zip(median).is_none_or(near), "{what}: {group:?}: p50 {told:?} for {median:?}");
    }
    assert!(wanted.is_empty(), "{what}: missing {wanted:?}");
}
