//! The figures as comma-separated values (RFC 4180), with a header. An empty field is not known.

use redial_store::stats::By;
use serde_json::Value;

use super::figures::Figures;

const CALLS: &[&str] = &[
    "calls",
    "succeeded",
    "failed",
    "unknown",
    "cancelled",
    "refused",
    "retries",
    "corrections",
    "p50_ms",
    "p95_ms",
    "answers",
    "input_tokens",
    "output_tokens",
    "tokens_unknown",
    "cost_usd",
    "cost_unknown",
];
const ATTEMPTS: &[&str] = &["attempts", "failed", "p50_ms", "p95_ms"];

pub(super) fn render(by: By, figures: &[Figures]) -> String {
    let (name, columns) = match by {
        By::Tool => ("tool", CALLS),
        By::Class => ("class", CALLS),
        By::Model => ("model", CALLS),
        By::Worker => ("worker", ATTEMPTS),
        By::Hour => ("hour", CALLS),
    };
    let columns: Vec<&str> = [name].iter().chain(columns).copied().collect();
    let mut lines = vec![columns.join(",")];
    for figures in figures {
        // Only plain data: it always becomes JSON.
        let value = serde_json::to_value(figures).unwrap_or_default();
        lines.push(columns.iter().map(|column| field(&value[column])).collect::<Vec<_>>().join(","));
    }
    lines.join("\n")
}

fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text_field(text),
        other => other.to_string(),
    }
}

/// In quotes if it must be; a text that a spreadsheet would take for a formula gets a quote mark before it.
fn text_field(text: &str) -> String {
    let text = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be_and_no_formula_is_one() {
        let fields = ["plain", "a,b", "say \"hi\"", "=1+1", "two\nlines"].map(text_field);
        assert_eq!(fields, ["plain", "\"a,b\"", "\"say \"\"hi\"\"\"", "'=1+1", "\"two\nlines\""]);
        assert_eq!(field(&Value::Null), "");
    }
}
