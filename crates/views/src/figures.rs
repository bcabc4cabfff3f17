//! The figures of one group of calls or attempts.

use std::cmp::Reverse;

use redial_api::{AttemptCounts, CallCounts, Counts, Figures, dollars};
use redial_store::stats::{By, Group, GroupSums, Histogram};

/// Returns the figures of a group of an answer to a question by `by`.
pub fn figures(by: By, and: Option<By>, group: &Group, sums: &GroupSums) -> Figures {
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
    Figures {
        tool: name(By::Tool),
        class: name(By::Class),
        model: name(By::Model),
        worker: name(By::Worker),
        hour: match found(By::Hour) {
            Some(Group::Hour(hour)) => Some(*hour),
            _ => None,
        },
        counts: if by == By::Worker { of_worker(sums) } else { Counts::Calls(of_calls(sums)) },
        p50_ms: quantile(0.5),
        p95_ms: quantile(0.95),
        p99_ms: quantile(0.99),
    }
}

const fn of_worker(sums: &GroupSums) -> Counts {
    Counts::Attempts(AttemptCounts { attempts: sums.attempts.attempts, failed: sums.attempts.failed })
}

fn of_calls(sums: &GroupSums) -> CallCounts {
    let (calls, usage) = (&sums.calls, &sums.calls.usage);
    let known = |sum: u64, unknown: u64| (usage.answers > unknown || sum > 0).then_some(sum);
    CallCounts {
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

/// Sorts figures by hour from the latest on; all others from the most calls on.
pub fn sort_groups(groups: &mut [(Group, GroupSums)]) {
    groups.sort_by_cached_key(|(group, sums)| {
        let (hour, name) = order(group);
        let most = if hour == 0 { sums.calls.calls.max(sums.attempts.attempts) } else { 0 };
        (Reverse(hour), Reverse(most), name)
    });
}

/// Returns the hour of a group, 0 without one, and its name.
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
