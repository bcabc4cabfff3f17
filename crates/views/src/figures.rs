//! The figures of one group of calls or attempts. What is not known is `null`, never 0.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use redial_store::stats::{By, Group, GroupSums, Histogram};
use schemars::JsonSchema;
use serde::Serialize;

/// The figures of one group. The field that names it is the one that figures are grouped by.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Figures {
    /// The tool; model turns by their registered name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The error class, or how calls ended that have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The start of the hour in which calls ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hour: Option<DateTime<Utc>>,
    /// Of a worker: its attempts. Else: the figures of calls.
    #[serde(flatten)]
    pub counts: Counts,
    /// Median in ms, within 10 %: of calls from submission to end, of a worker's attempts how long the tool ran. `null` if no
    /// call had an attempt.
    pub p50_ms: Option<u64>,
    /// The 95th percentile of the same.
    pub p95_ms: Option<u64>,
    /// The 99th percentile of the same.
    pub p99_ms: Option<u64>,
}

/// How many.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Counts {
    /// Calls, by how they ended.
    Calls {
        /// All of them.
        calls: u64,
        /// With success.
        succeeded: u64,
        /// Without.
        failed: u64,
        /// Nobody knows how.
        unknown: u64,
        /// Somebody stopped them.
        cancelled: u64,
        /// They never ran.
        refused: u64,
        /// Attempts beyond the first of each call.
        retries: u64,
        /// Calls that a model made after a call of the same tool had failed in a way that it could correct.
        corrections: u64,
        /// Answers of models among them.
        answers: u64,
        /// Tokens that models read: `null` if it is not known of any answer; at least so many, if it is unknown of some.
        input_tokens: Option<u64>,
        /// Tokens that models wrote; the same holds.
        output_tokens: Option<u64>,
        /// Answers of which a number of tokens is not known.
        tokens_unknown: u64,
        /// The price of answers in US dollars; the same holds.
        cost_usd: Option<f64>,
        /// Answers of which the price is not known.
        cost_unknown: u64,
    },
    /// Attempts of a worker.
    Attempts {
        /// All of them.
        attempts: u64,
        /// Without success.
        failed: u64,
    },
}

impl Figures {
    /// The figures of a group of an answer to a question by `by`.
    pub fn new(by: By, and: Option<By>, group: &Group, sums: &GroupSums) -> Self {
        let (first, second) = match group {
            Group::Both(first, second) => (first.as_ref(), Some(second.as_ref())),
            first => (first, None),
        };
        let found = |wanted: By| if by == wanted { Some(first) } else { second.filter(|_| and == Some(wanted)) };
        let name = |wanted: By| match found(wanted) {
            Some(Group::Name(name)) => Some(name.clone()),
            _ => None,
        };
        let durations = if by == By::Worker { &sums.attempts.durations } else { &sums.calls.durations };
        let quantile = |share| Histogram::quantile(durations, share);
        Self {
            tool: name(By::Tool),
            class: name(By::Class),
            model: name(By::Model),
            worker: name(By::Worker),
            hour: match found(By::Hour) {
                Some(Group::Hour(hour)) => Some(*hour),
                _ => None,
            },
            counts: if by == By::Worker { Counts::of_worker(sums) } else { Counts::of_calls(sums) },
            p50_ms: quantile(0.5),
            p95_ms: quantile(0.95),
            p99_ms: quantile(0.99),
        }
    }
}

impl Counts {
    fn of_worker(sums: &GroupSums) -> Self {
        Self::Attempts { attempts: sums.attempts.attempts, failed: sums.attempts.failed }
    }

    fn of_calls(sums: &GroupSums) -> Self {
        let (calls, usage) = (&sums.calls, &sums.calls.usage);
        let known = |sum: u64, unknown: u64| (usage.answers > unknown || sum > 0).then_some(sum);
        Self::Calls {
            calls: calls.calls,
            succeeded: sums.ended_as("succeeded"),
            failed: sums.ended_as("failed"),
            unknown: sums.ended_as("unknown"),
            cancelled: sums.ended_as("cancelled"),
            refused: sums.ended_as("refused"),
            retries: calls.retries,
            corrections: calls.corrections,
            answers: usage.answers,
            input_tokens: known(usage.input_tokens, usage.tokens_unknown),
            output_tokens: known(usage.output_tokens, usage.tokens_unknown),
            tokens_unknown: usage.tokens_unknown,
            cost_usd: known(usage.cost_micros, usage.cost_unknown).map(dollars),
            cost_unknown: usage.cost_unknown,
        }
    }
}

/// A price in US dollars, of millionths.
#[expect(clippy::cast_precision_loss, reason = "below nine billion dollars every millionth is exact")]
pub fn dollars(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Figures by hour from the latest on; all others from the most calls on.
pub fn sort_groups(groups: &mut [(Group, GroupSums)]) {
    groups.sort_by_cached_key(|(group, sums)| {
        let (hour, name) = order(group);
        let most = if hour == 0 { sums.calls.calls.max(sums.attempts.attempts) } else { 0 };
        (Reverse(hour), Reverse(most), name)
    });
}

/// The hour of a group, 0 without one, and its name.
fn order(group: &Group) -> (i64, String) {
    match group {
        Group::Hour(hour) => (hour.timestamp(), String::new()),
        Group::Name(name) => (0, name.clone()),
        Group::Both(first, second) => {
            let ((first_hour, first), (second_hour, second)) = (order(first), order(second));
            (first_hour.max(second_hour), format!("{first}\0{second}"))
        }
    }
}
