//! What a task is, and what it cost.

use redial_proto::{TaskView, Usage};

use super::{
    entry::{Entry, Event, Ink},
    page::Page,
    text,
};
use crate::output;

/// Returns the fields of a task, above its timeline.
pub(crate) fn head(task: &TaskView, page: Page) -> String {
    let agent = task.agent.as_deref().unwrap_or("given with the task");
    let code = task.code.map(|code| format!(": {code}")).unwrap_or_default();
    let message = task.message.as_deref().map(|message| format!("; {}", output::plain(message))).unwrap_or_default();
    let by = task.submitted_by.as_deref().map(|user| format!(" by {}", output::plain(user))).unwrap_or_default();
    let fields = [
        ("task", Some(task.task.to_string())),
        ("state", Some(format!("{}{code}{message}", task.state))),
        ("agent", Some(format!("{} (model {})", output::plain(agent), task.model))),
        ("conversation", Some(output::one_line(&task.conversation, 200))),
        ("submitted", Some(format!("{}{by}", output::time(task.submitted_at)))),
        // Once it has started, its first messages contain the input.
        ("input", task.started_at.is_none().then(|| text::excerpt(&task.input))),
        ("totals", Some(totals(task))),
    ];
    let set = fields.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    set.map(|(name, value)| page.field(name, value)).collect()
}

/// Returns the first line of a timeline that is printed while the task runs.
pub(crate) fn title(task: &TaskView) -> String {
    let agent = task.agent.as_deref().map(|agent| format!("agent {}, ", output::plain(agent))).unwrap_or_default();
    format!("task {} ({agent}model {})", task.task, task.model)
}

/// Returns the last line of a timeline that is printed while the task runs.
pub(crate) fn last(task: &TaskView) -> Event {
    Event { time: String::new(), entries: vec![Entry::new("totals", Ink::Dim, totals(task))] }
}

/// Writes `3 turns, 2 calls, 1 correction, 1,234 tokens (1,000 read, 234 written), $0.0012, 4.0 s`. An estimate says
/// so, and so does a cost that is unknown.
fn totals(task: &TaskView) -> String {
    let mut parts = vec![
        count(task.turns.into(), "turn"),
        count(task.tool_calls.into(), "call"),
        count(task.corrections.into(), "correction"),
        tokens(&task.usage),
    ];
    parts.extend(cost(&task.usage));
    parts.extend(task.finished_at.map(|end| text::span(end - task.submitted_at)));
    parts.join(", ")
}

/// Writes `1,234 tokens (1,000 read, 234 written)`, or `≈ 1,234 tokens (estimated: 1,000 read, 234 written)`.
pub(crate) fn tokens(usage: &Usage) -> String {
    let (read, written) = (thousands(usage.input_tokens), thousands(usage.output_tokens));
    let all = count(usage.tokens(), "token");
    match usage.estimated_tokens() {
        0 => format!("{all} ({read} read, {written} written)"),
        estimated if estimated == usage.tokens() => format!("≈ {all} (estimated: {read} read, {written} written)"),
        estimated => {
            format!("≈ {all} ({read} read, {written} written; {} of them estimated)", thousands(estimated))
        }
    }
}

/// Writes what turns cost: `$0.0012`, `≈ $0.0012 (estimated)`, `at least $0.0012 (2 turns have no price)`, `cost
/// unknown`. `None` before the first turn.
pub(crate) fn cost(usage: &Usage) -> Option<String> {
    let about = if usage.estimated_cost_micros > 0 { "≈ " } else { "" };
    let estimated = |micros| match usage.estimated_cost_micros {
        0 => String::new(),
        all if all == micros => " (estimated)".to_owned(),
        part => format!(" ({} of it estimated)", dollars(part)),
    };
    match (usage.cost_micros, usage.turns_without_price) {
        (None, 0) => None,
        (None, _) => Some("cost unknown: the model has no price".to_owned()),
        (Some(micros), 0) => Some(format!("{about}{}{}", dollars(micros), estimated(micros))),
        (Some(micros), turns) => {
            let have = if turns == 1 { "has" } else { "have" };
            let without = format!(" ({} {have} no price)", count(turns.into(), "turn"));
            Some(format!("at least {about}{}{}{without}", dollars(micros), estimated(micros)))
        }
    }
}

/// Writes `$1,234.0012`: at least cents, at most millionths.
pub(crate) fn dollars(micros: u64) -> String {
    let fraction = format!("{:06}", micros % 1_000_000);
    let kept = fraction.trim_end_matches('0').len().max(2);
    format!("${}.{}", thousands(micros / 1_000_000), &fraction[..kept])
}

/// Writes `1 call`, `2 calls`.
pub(crate) fn count(n: u64, what: &str) -> String {
    format!("{} {what}{}", thousands(n), if n == 1 { "" } else { "s" })
}

/// Writes `1,234,567`.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_prices_are_readable() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(count(1, "turn"), "1 turn");
        assert_eq!(count(0, "turn"), "0 turns");
        let prices = [0, 1, 1_200, 500_000, 1_234_000_000].map(dollars);
        assert_eq!(prices, ["$0.00", "$0.000001", "$0.0012", "$0.50", "$1,234.00"]);
    }

    #[test]
    fn what_is_unknown_or_estimated_is_called_so() {
        let told = Usage { input_tokens: 1_000, output_tokens: 234, cost_micros: Some(1_200), ..Usage::default() };
        let part = Usage { estimated_output_tokens: 234, estimated_cost_micros: 200, ..told };
        let all = Usage { estimated_input_tokens: 1_000, estimated_cost_micros: 1_200, ..part };
        for (usage, shown) in [
            (Usage::default(), "0 tokens (0 read, 0 written)"),
            (told, "1,234 tokens (1,000 read, 234 written), $0.0012"),
            (
                part,
                "≈ 1,234 tokens (1,000 read, 234 written; 234 of them estimated), ≈ $0.0012 ($0.0002 of it estimated)",
            ),
            (all, "≈ 1,234 tokens (estimated: 1,000 read, 234 written), ≈ $0.0012 (estimated)"),
            (
                Usage { turns_without_price: 1, ..told },
                "1,234 tokens (1,000 read, 234 written), at least $0.0012 (1 turn has no price)",
            ),
            (
                Usage { cost_micros: None, turns_without_price: 2, ..told },
                "1,234 tokens (1,000 read, 234 written), cost unknown: the model has no price",
            ),
        ] {
            let told = [Some(tokens(&usage)), cost(&usage)].into_iter().flatten().collect::<Vec<_>>().join(", ");
            assert_eq!(told, shown);
        }
    }
}
