//! Calls as CSV, a line for each: JSON stands in its cells as it is.

use chrono::{DateTime, SecondsFormat, Utc};
use redial_store::audit::CallAudit;

use redial_views::csv_cell as cell;

use crate::timeline::call;

pub(super) const HEAD: [&str; 24] = [
    "call",
    "tool",
    "state",
    "class",
    "message",
    "attempts",
    "submitted_at",
    "finished_at",
    "total_ms",
    "next_attempt_at",
    "conversation",
    "tenant",
    "key",
    "pool",
    "effect",
    "last_worker",
    "task",
    "turn",
    "call_index",
    "redrive_of",
    "redriven_as",
    "arguments",
    "output",
    "attempts_made",
];

/// Returns the cells of a call, without the end of the line.
pub(super) fn row(record: &CallAudit) -> anyhow::Result<String> {
    let line = &record.line;
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Micros, true);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let number = |number: Option<String>| number.unwrap_or_default();
    let cells = [
        line.call.to_string(),
        line.tool.clone(),
        line.state.to_string(),
        number(line.class.map(|class| class.to_string())),
        text(&line.message),
        line.attempts.to_string(),
        time(line.submitted_at),
        line.finished_at.map(time).unwrap_or_default(),
        number(line.total_ms.map(|ms| ms.to_string())),
        line.next_attempt_at.map(time).unwrap_or_default(),
        text(&line.conversation),
        record.tenant.clone(),
        text(&line.key),
        record.pool.clone(),
        record.effect.clone(),
        text(&line.last_worker),
        number(record.task.map(|of| of.task.to_string())),
        number(record.task.map(|of| of.turn.to_string())),
        number(record.task.map(|of| of.call_index.to_string())),
        number(record.redrive_of.map(|id| id.to_string())),
        number(line.redriven_as.map(|id| id.to_string())),
        record.arguments.get().to_owned(),
        call::result(record).map(|output| output.get().to_owned()).unwrap_or_default(),
        serde_json::to_string(&record.attempts_made)?,
    ];
    Ok(cells.each_ref().map(|text| cell(text)).join(","))
}
