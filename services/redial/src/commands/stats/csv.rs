//! The figures as comma-separated values, with a header. An empty field is not known.

use redial_api::Figures;
use redial_store::stats::By;
use serde_json::Value;

use redial_views::csv_cell as cell;

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
        Value::String(text) => cell(text).into_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_empty() {
        assert_eq!(field(&Value::Null), "");
        assert_eq!(field(&Value::from("=1,2")), "\"'=1,2\"");
        assert_eq!(field(&Value::from(-3)), "-3");
    }
}
