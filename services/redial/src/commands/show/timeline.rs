//! A call's record as a person reads it: what it is, what happened when, what it waits for or what it gave.

use chrono::{DateTime, TimeDelta, Utc};
use redial_proto::{CallState, FieldError, Repair, limits};
use redial_store::audit::{AttemptRecord, CallRecord, LateRecord};
use serde_json::value::RawValue;

use super::pretty;
use crate::{commands::story::violation, output};

/// Arguments up to this many bytes stand on one line.
const SHORT: usize = 90;
/// Arguments beyond this many bytes are cut.
const HUGE: usize = 4000;
/// Columns of a point in time and of an offset.
const TIME: usize = 24;
const OFFSET: usize = 12;

/// The record as text of several lines, without a newline at the end.
pub(super) fn render(record: &CallRecord, now: DateTime<Utc>) -> String {
    let mut text = head(record);
    text.push('\n');
    for event in events(record) {
        text.push_str(&event.render(record.line.submitted_at));
    }
    if let Some(waits) = waiting(record, now) {
        text.push_str(&columns("now", "", &waits));
    }
    match result(record) {
        Some(output) => format!("{text}\nresult\n{}", pretty::indented(output.get())),
        None => text.trim_end().to_owned(),
    }
}

fn head(record: &CallRecord) -> String {
    let line = &record.line;
    let attempts = match line.attempts {
        0 => "no attempt".to_owned(),
        1 => "1 attempt".to_owned(),
        n => format!("{n} attempts"),
    };
    let tenant = match record.tenant.as_str() {
        "default" => String::new(),
        tenant => format!(" (tenant {tenant})"),
    };
    let fields = [
        ("call", Some(line.call.to_string())),
        ("tool", Some(format!("{} (effect {}, pool {})", line.tool, record.effect, record.pool))),
        ("state", Some(format!("{}, {attempts}", line.state))),
        ("key", line.key.as_ref().map(|key| format!("{key}{tenant}"))),
        ("conversation", line.conversation.clone()),
        ("redrive of", record.redrive_of.map(|id| id.to_string())),
        ("redriven as", record.redriven_as.map(|id| id.to_string())),
    ];
    let set = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let head: String = set.map(|(name, value)| field(name, &value)).collect();
    head + &arguments(record.arguments.get()) + &repairs(record)
}

/// What was changed in the arguments, a line each.
fn repairs(record: &CallRecord) -> String {
    let repairs = record.repairs.as_ref().map(|repairs| serde_json::from_str::<Vec<Repair>>(repairs.get()));
    repairs
        .and_then(Result::ok)
        .unwrap_or_default()
        .iter()
        .map(|repair| field("repaired", &repair.to_string()))
        .collect()
}

fn field(name: &str, value: &str) -> String {
    format!("{name:<14}{value}\n")
}

fn arguments(json: &str) -> String {
    let line = pretty::one_line(json);
    if line.len() <= SHORT {
        return field("arguments", &line);
    }
    let text = pretty::indented(json);
    if text.len() <= HUGE {
        return format!("arguments\n{text}\n");
    }
    format!("arguments\n{}\n{} bytes in all; --json prints them\n", limits::shorten(&text, HUGE), json.len())
}

/// Something that happened; of several lines if it has more to say.
struct Event {
    at: DateTime<Utc>,
    text: String,
}

impl Event {
    fn render(&self, start: DateTime<Utc>) -> String {
        columns(&output::time(self.at), &format!("+{}", span(self.at - start)), &self.text)
    }
}

/// In the order of time; what happened at the same time stays in the order of a call's life.
fn events(record: &CallRecord) -> Vec<Event> {
    let mut events = vec![Event { at: record.line.submitted_at, text: "submitted".to_owned() }];
    for attempt in &record.attempts_made {
        let text = format!("attempt {} started on worker {}", attempt.attempt, attempt.worker);
        events.push(Event { at: attempt.started_at, text });
        events.extend(attempt.ended_at.map(|at| Event { at, text: attempt_end(attempt, at) }));
    }
    events.extend(record.line.finished_at.map(|at| Event { at, text: call_end(record) }));
    events.extend(record.late_reports.iter().map(|late| Event { at: late.received_at, text: late_report(late) }));
    events.sort_by_key(|event| event.at);
    events
}

fn attempt_end(attempt: &AttemptRecord, at: DateTime<Utc>) -> String {
    let mut text = format!("attempt {} {}", attempt.attempt, attempt.outcome);
    if let Some(ms) = attempt.duration_ms {
        text.push_str(&format!(" after {}", output::span(ms)));
    }
    if let Some(error) = error(attempt.class.as_deref(), attempt.message.as_deref()) {
        text.push_str(&format!(": {error}"));
    }
    push_lines(&mut text, details(attempt.details.as_deref()));
    if let Some(next) = attempt.retry_at {
        text.push_str(&format!("\nnext attempt at {} (in {})", output::time(next), span(next - at)));
    }
    text
}

fn call_end(record: &CallRecord) -> String {
    let line = &record.line;
    let mut text = line.state.clone();
    // What was refused never ran: it ended when it came.
    if let Some(ms) = line.total_ms.filter(|_| line.state != CallState::Refused.as_str()) {
        text.push_str(&format!(", {} after it was submitted", output::span(ms)));
    }
    if let Some(error) = error(line.class.as_deref(), line.message.as_deref()) {
        text.push_str(&format!(": {error}"));
    }
    push_lines(&mut text, details(record.details.as_deref()));
    if record.cancel_requested {
        text.push_str("\na cancel was asked for while it ran");
    }
    text
}

fn late_report(late: &LateRecord) -> String {
    let LateRecord { attempt, worker, outcome, .. } = late;
    format!("late report of attempt {attempt} by worker {worker} ignored; it said: {outcome}")
}

pub(super) fn error(class: Option<&str>, message: Option<&str>) -> Option<String> {
    match (class, message.map(output::plain)) {
        (Some(class), Some(message)) => Some(format!("{class}: {message}")),
        (Some(class), None) => Some(class.to_owned()),
        (None, message) => message,
    }
}

/// One line for each broken rule. What cannot be read is shown as it is.
fn details(json: Option<&RawValue>) -> Vec<String> {
    let Some(json) = json else { return Vec::new() };
    match serde_json::from_str::<Vec<FieldError>>(json.get()) {
        Ok(violations) => violations.iter().map(violation).collect(),
        Err(_) => vec![limits::shorten(&pretty::one_line(json.get()), HUGE)],
    }
}

/// What a call that has not ended waits for.
pub(super) fn waiting(record: &CallRecord, now: DateTime<Utc>) -> Option<String> {
    let deadline = format!("no attempt starts after {}", output::time(record.deadline_at));
    match record.line.state.parse().ok()? {
        CallState::Ready => {
            let next = record.line.attempts + 1;
            Some(format!("waits for a free worker of pool {} to start attempt {next}\n{deadline}", record.pool))
        }
        CallState::RetryWait => {
            Some(format!("waits for its next attempt, {}\n{deadline}", due(record.line.next_attempt_at, now)))
        }
        CallState::Running => {
            let mut text = still_running(record.attempts_made.last()?, now);
            if record.cancel_requested {
                text.push_str("\na cancel was asked for: the worker was told to stop");
            }
            Some(text)
        }
        _ => None,
    }
}

fn still_running(attempt: &AttemptRecord, now: DateTime<Utc>) -> String {
    let AttemptRecord { attempt, worker, started_at, .. } = attempt;
    format!("waits for worker {worker} to end attempt {attempt}, which has run for {}", span(now - *started_at))
}

fn due(at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> String {
    match at {
        Some(at) if at > now => format!("due at {} (in {})", output::time(at), span(at - now)),
        _ => "due now".to_owned(),
    }
}

fn result(record: &CallRecord) -> Option<&RawValue> {
    record.attempts_made.iter().rev().find_map(|attempt| attempt.output.as_deref())
}

fn push_lines(text: &mut String, lines: Vec<String>) {
    for line in lines {
        text.push('\n');
        text.push_str(&line);
    }
}

/// A line of the timeline; further lines of the text are indented to stand under the first.
fn columns(time: &str, offset: &str, text: &str) -> String {
    let indent = format!("\n{:width$}", "", width = TIME + OFFSET + 4);
    format!("{time:<TIME$}  {offset:>OFFSET$}  {}\n", text.replace('\n', &indent))
}

/// Rounded to ms, as the database rounds the total time.
fn span(span: TimeDelta) -> String {
    let us = span.num_microseconds().unwrap_or(i64::MAX - 500);
    output::span((us + 500).max(0) / 1000)
}
