//! The figures of one group, as `--json` and `--csv` write them. What is not known is `null`, never 0.

use chrono::{DateTime, Utc};
use redial_store::stats::{By, Group, GroupSums, Histogram};
use serde::Serialize;

/// See the module.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hour: Option<DateTime<Utc>>,
    /// Of a worker: its attempts. Else: the figures of calls.
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Median and 95th percentile in ms, about: of calls from submission to end, of a worker's attempts how long the tool
    /// ran. `null` if no call had an attempt.
    pub(crate) p50_ms: Option<u64>,
    pub(crate) p95_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Counts {
    Calls {
        calls: u64,
        succeeded: u64,
        failed: u64,
        unknown: u64,
        cancelled: u64,
        refused: u64,
        retries: u64,
        corrections: u64,
        /// Answers of models among them.
        answers: u64,
        /// Sums over answers; `null` if it is not known of any. At least so much, if it is unknown of some.
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
        tokens_unknown: u64,
        cost_usd: Option<f64>,
        cost_unknown: u64,
    },
    Attempts {
        attempts: u64,
        failed: u64,
    },
}

impl Figures {
    pub(crate) fn new(by: By, group: &Group, sums: &GroupSums) -> Self {
        let name = |wanted: By| match group {
            Group::Name(name) if by == wanted => Some(name.clone()),
            _ => None,
        };
        let durations = if by == By::Worker { &sums.attempts.durations } else { &sums.calls.durations };
        let quantile = |share| Histogram::quantile(durations, share);
        Self {
            tool: name(By::Tool),
            class: name(By::Class),
            model: name(By::Model),
            worker: name(By::Worker),
            hour: match group {
                Group::Hour(hour) => Some(*hour),
                Group::Name(_) => None,
            },
            counts: if by == By::Worker { Counts::of_worker(sums) } else { Counts::of_calls(sums) },
            p50_ms: quantile(0.5),
            p95_ms: quantile(0.95),
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

#[expect(clippy::cast_precision_loss, reason = "below nine billion dollars every millionth is exact")]
fn dollars(micros: u64) -> f64 {
    micros as f64 / 1e6
}
