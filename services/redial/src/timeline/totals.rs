//! What a task is, and what it cost.

use redial_proto::{TaskView, Usage};

use super::{
    entry::{Entry, Event, Ink},
    page::Page,
    text,
};
use crate::output;

/// The fields of a task, above its timeline.
pub(crate) fn head(task: &TaskView, page: Page) -> String {
    let agent = task.agent.as_deref().unwrap_or("given with the task");
    let code = task.code.map(|code| format!(": {code}")).unwrap_or_default();
    let message = task.message.as_deref().map(|message| format!("; {}", output::plain(message))).unwrap_or_default();
    let fields = [
        ("task", Some(task.task.to_string())),
        ("state", Some(format!("{}{code}{message}", task.state))),
        ("agent", Some(format!("{} (model {})", output::plain(agent), task.model))),
        ("conversation", Some(output::one_line(&task.conversation, 200))),
        ("submitted", Some(output::time(task.submitted_at))),
        // Once it has started, its first messages contain the input.
        ("input", task.started_at.is_none().then(|| text::excerpt(&task.input))),
        ("totals", Some(totals(task))),
    ];
    let set = fields.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    set.map(|(name, value)| page.field(name, value)).collect()
}

/// The first line of a timeline that is printed while the task runs.
pub(crate) fn title(task: &TaskView) -> String {
    let agent = task.agent.as_deref().map(|agent| format!("agent {}, ", output::plain(agent))).unwrap_or_default();
    format!("task {} ({agent}model {})", task.task, task.model)
}

/// The last line of a timeline that is printed while the task runs.
pub(crate) fn last(task: &TaskView) -> Event {
    Event { time: String::new(), entries: vec![Entry::new("totals", Ink::Dim, totals(task))] }
}

/// `3 turns, 2 calls, 1 correction, 1,234 tokens (1,000 read, 234 written), $0.0012, 4.0 s`.
fn totals(task: &TaskView) -> String {
    let mut parts = vec![
        count(task.turns.into(), "turn"),
        count(task.tool_calls.into(), "call"),
        count(task.corrections.into(), "correction"),
        tokens(&task.usage),
    ];
    parts.extend(dollars(task.usage.cost_micros));
    parts.extend(task.finished_at.map(|end| text::span(end - task.submitted_at)));
    parts.join(", ")
}

/// `1,234 tokens (1,000 read, 234 written)`.
pub(crate) fn tokens(usage: &Usage) -> String {
    let (read, written) = (usage.input_tokens, usage.output_tokens);
    let all = count(read.saturating_add(written), "token");
    format!("{all} ({} read, {} written)", thousands(read), thousands(written))
}

/// A price; `None` if it is not known.
pub(crate) fn dollars(micros: u64) -> Option<String> {
    if micros == 0 {
        return None;
    }
    let fraction = format!("{:06}", micros % 1_000_000);
    let kept = fraction.trim_end_matches('0').len().max(2);
    Some(format!("${}.{}", thousands(micros / 1_000_000), &fraction[..kept]))
}

/// `1 call`, `2 calls`.
pub(crate) fn count(n: u64, what: &str) -> String {
    format!("{} {what}{}", thousands(n), if n == 1 { "" } else { "s" })
}

fn thousands(n: u64) -> String {
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
        let shown = ["$0.000001", "$0.0012", "$0.50", "$1,234.00"].map(|text| Some(text.to_owned()));
        assert_eq!(prices[0], None);
        assert_eq!(prices[1..], shown);
    }
}
