//! What a task is, and what it cost, in words.

use chrono::{DateTime, TimeDelta, Utc};
use redial_proto::{TaskView, Usage};

use super::{
    page::{Entry, Ink, Page},
    quote::quoted,
};
use crate::output;

/// Who works on what: the lines above a story.
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
        // Once it has started its first messages say so.
        ("input", task.started_at.is_none().then(|| quoted(&task.input))),
        ("totals", Some(totals(task))),
    ];
    let set = fields.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    set.map(|(name, value)| page.field(name, value)).collect()
}

/// The first line of a story.
pub(super) fn title(task: &TaskView) -> String {
    let agent = task.agent.as_deref().map(|agent| format!("agent {}, ", output::plain(agent))).unwrap_or_default();
    format!("task {} ({agent}model {})", task.task, task.model)
}

/// The last line of a story.
pub(super) fn last(task: &TaskView) -> Entry {
    Entry::new("totals", Ink::Dim, totals(task))
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
    parts.extend(task.finished_at.map(|end| span(end - task.submitted_at)));
    parts.join(", ")
}

/// Tokens in words.
pub(crate) fn tokens(usage: &Usage) -> String {
    let (read, written) = (usage.input_tokens, usage.output_tokens);
    let all = count(read.saturating_add(written), "token");
    format!("{all} ({} read, {} written)", thousands(read), thousands(written))
}

/// A price; nothing if it is not known.
pub(crate) fn dollars(micros: u64) -> Option<String> {
    if micros == 0 {
        return None;
    }
    let fraction = format!("{:06}", micros % 1_000_000);
    let kept = fraction.trim_end_matches('0').len().max(2);
    Some(format!("${}.{}", thousands(micros / 1_000_000), &fraction[..kept]))
}

/// `1 call`, `2 calls`.
pub(super) fn count(n: u64, what: &str) -> String {
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

/// How long after the start.
pub(super) fn offset(start: DateTime<Utc>, at: DateTime<Utc>) -> String {
    format!("+{}", span(at - start))
}

/// A span of time, rounded to ms.
pub(super) fn span(span: TimeDelta) -> String {
    let us = span.num_microseconds().unwrap_or(i64::MAX - 500);
    output::span((us + 500).max(0) / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_people() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(count(1, "turn"), "1 turn");
        assert_eq!(count(0, "turn"), "0 turns");
        let prices = [0, 1, 1_200, 500_000, 1_234_000_000].map(dollars);
        let shown = ["$0.000001", "$0.0012", "$0.50", "$1,234.00"].map(|text| Some(text.to_owned()));
        assert_eq!(prices[0], None);
        assert_eq!(prices[1..], shown);
    }
}
