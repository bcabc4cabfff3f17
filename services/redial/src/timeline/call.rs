//! The text of each event of a call.

use chrono::{DateTime, TimeDelta, Utc};
use redial_api::{CallItem, LateReport};
use redial_proto::{
    CallState, ErrorClass, FieldError, Finish, Repair, TurnReply, TurnRequest, json_text, limits, turn,
};
use redial_store::{
    TaskCall,
    audit::{AttemptRecord, CallAudit},
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{
    entry::{Entry, Event, Ink},
    page::Page,
    text, totals,
};
use crate::output;

/// Arguments up to this many bytes are shown on one line.
const SHORT: usize = 90;
/// An attempt that starts so long after it was due was held back, or waited for a worker.
const LATE: TimeDelta = TimeDelta::seconds(1);
/// Arguments of more bytes are cut, and this much of a large result is shown.
const HUGE: usize = 4000;
/// A result that takes more bytes is cut.
const LARGE: usize = 256 * 1024;

/// Returns what the call is: its fields, arguments and repairs.
pub(crate) fn head(record: &CallAudit, page: Page) -> String {
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
        ("submitted by", record.submitted_by.clone()),
        ("task", record.task.map(of_task)),
        ("redrive of", record.redrive_of.map(|id| id.to_string())),
        ("redriven as", line.redriven_as.map(|id| id.to_string())),
    ];
    let fields = fields.into_iter().chain([("operator", operator(line))]);
    let set = fields.filter_map(|(name, value)| Some((name, value?)));
    let head: String = set.map(|(name, value)| page.field(name, &value)).collect();
    head + &arguments(record.arguments.get(), page) + &changes(record, page)
}

fn of_task(of: TaskCall) -> String {
    let what =
        if of.call_index == 0 { "the request to the model".to_owned() } else { format!("call {}", of.call_index) };
    format!("{} (turn {}, {what})", of.task, of.turn)
}

/// Says what an operator can do about a call whose tool may have done its work.
fn operator(line: &CallItem) -> Option<String> {
    let open = line.state == CallState::Unknown && line.redriven_as.is_none();
    open.then(|| {
        format!(
            "inspect what {} did. If it did nothing: redial redrive {}, which runs it again as a new call. If it did its work, \
             leave it",
            line.tool, line.call
        )
    })
}

fn arguments(json: &str, page: Page) -> String {
    let line = json_text::one_line(json);
    if line.len() <= SHORT {
        return page.field("arguments", &line);
    }
    format!("arguments\n{}\n", readable(json, HUGE))
}

/// Writes JSON as people read it. Of more than `most` bytes only the start.
fn readable(json: &str, most: usize) -> String {
    // Laid out, nested values could take a hundred times their bytes.
    let text = if json.len() > most { json_text::one_line(json) } else { json_text::indented(json) };
    if text.len() <= most {
        return text;
    }
    format!("{}\n{} bytes in all; --json prints them", limits::shorten(&text, HUGE), json.len())
}

fn changes(record: &CallAudit, page: Page) -> String {
    let repairs: Vec<Repair> = list(record.repairs.as_deref());
    let repairs = repairs.iter().map(|repair| page.field("repaired", &repair.to_string()));
    let undeclared: Vec<String> = list(record.undeclared.as_deref());
    let undeclared = undeclared.iter().map(|path| page.field("undeclared", &format!("{path} is not in the schema")));
    repairs.chain(undeclared).collect()
}

fn list<T: DeserializeOwned>(json: Option<&RawValue>) -> Vec<T> {
    json.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or_default()
}

/// Returns what happened to the call, in the order of time; what happened at the same time in the order of a call's
/// life. Last, what it waits for.
pub(crate) fn events(record: &CallAudit, now: DateTime<Utc>) -> Vec<Event> {
    let mut entries = vec![(record.line.submitted_at, Entry::new("submitted", Ink::Bold, ""))];
    let mut due = None;
    for attempt in &record.attempts_made {
        let label = format!("attempt {}", attempt.attempt);
        let late = due.map(|due| attempt.started_at - due).filter(|late| *late >= LATE);
        let late = late.map(|late| format!(", {} after it was due", text::span(late))).unwrap_or_default();
        let started = format!("started on worker {}{late}", attempt.worker);
        due = attempt.retry_at;
        entries.push((attempt.started_at, Entry::new(label.as_str(), Ink::Dim, started)));
        entries.extend(attempt.ended_at.map(|at| (at, Entry::new(label, ink(attempt), attempt_end(attempt, at)))));
    }
    entries.extend(record.line.finished_at.map(|at| (at, call_end(record))));
    entries.extend(record.late_reports.iter().map(|late| (late.received_at, late_report(late))));
    entries.sort_by_key(|(at, _)| *at);
    let start = record.line.submitted_at;
    let time = |at| format!("{}{:>15}", output::time(at), text::offset(start, at));
    let event = |(at, entry)| Event { time: time(at), entries: vec![entry] };
    let waits = waiting(record, now).map(|text| Entry::new("waits", Ink::Yellow, text));
    let waits = waits.map(|entry| Event { time: "now".to_owned(), entries: vec![entry] });
    entries.into_iter().map(event).chain(waits).collect()
}

/// Returns what a task's timeline shows of a step's call: its id, view and usage if it is a turn, its attempts.
pub(crate) fn summary(record: &CallAudit) -> Vec<Entry> {
    let mut entries = vec![Entry::new("call id", Ink::Dim, record.line.call.to_string())];
    if turn::model_name(&record.line.tool).is_some() {
        entries.extend(view(record));
        entries.extend(usage(record));
        entries.extend(cut_off(record));
    }
    // Without the field errors: the feedback has them.
    entries.extend(record.attempts_made.iter().map(|attempt| {
        let text = format!("on worker {}: {}", attempt.worker, outcome(attempt));
        Entry::new(format!("attempt {}", attempt.attempt), ink(attempt), text)
    }));
    entries.extend(record.late_reports.iter().map(late_report));
    entries
}

/// Says what a call that has not ended waits for.
pub(crate) fn waiting(record: &CallAudit, now: DateTime<Utc>) -> Option<String> {
    let deadline = format!("no attempt starts after {}", output::time(record.deadline_at));
    match record.line.state {
        CallState::Ready => {
            let next = record.line.attempts + 1;
            let reason = record.waits.map_or_else(
                || format!("for a free worker of pool {}", record.pool),
                |waits| text::waiting(&waits, &record.line.tool, &record.pool, now),
            );
            Some(format!("{reason}\nattempt {next} is next; {deadline}"))
        }
        CallState::RetryWait => {
            let due = match record.line.next_attempt_at.filter(|at| *at > now) {
                Some(at) => format!("at {}", text::time_and_span(at, now)),
                None => "now".to_owned(),
            };
            let reason = record.waits.map_or_else(
                || format!("for its next attempt, due {due}"),
                |waits| text::waiting(&waits, &record.line.tool, &record.pool, now),
            );
            Some(format!("{reason}\n{deadline}"))
        }
        CallState::ClientWait => {
            Some(format!("for its client to answer, until {}", text::time_and_span(record.deadline_at, now)))
        }
        CallState::Running => {
            let AttemptRecord { attempt, worker, started_at, unheard_since, .. } = record.attempts_made.last()?;
            let since = text::span(now - *started_at);
            let cancel = if record.cancel_requested { "\ncancel requested: the worker was asked to stop" } else { "" };
            let unheard = unheard_since.map(|at| format!("\nthe worker was not heard since {}", output::time(at)));
            let unheard = unheard.unwrap_or_default();
            Some(format!("for worker {worker} to end attempt {attempt}, which has run for {since}{unheard}{cancel}"))
        }
        _ => None,
    }
}

fn attempt_end(attempt: &AttemptRecord, at: DateTime<Utc>) -> String {
    let mut lines = vec![outcome(attempt)];
    lines.extend(field_errors(attempt.details.as_deref()));
    lines.extend(attempt.retry_at.map(|next| text::retry_due(next, at)));
    lines.join("\n")
}

fn outcome(attempt: &AttemptRecord) -> String {
    text::ended(&attempt.outcome, attempt.duration_ms, attempt.class.as_deref(), attempt.message.as_deref())
}

fn ink(attempt: &AttemptRecord) -> Ink {
    if attempt.class.is_some() { Ink::Yellow } else { Ink::Dim }
}

fn call_end(record: &CallAudit) -> Entry {
    let line = &record.line;
    // A refused call never ran: it ended when it was submitted.
    let total = line.total_ms.filter(|_| line.state != CallState::Refused);
    let total = total.map(|ms| format!("{} after it was submitted", output::span(ms))).unwrap_or_default();
    let text = total + &text::because(line.class.map(ErrorClass::as_str), line.message.as_deref());
    let mut lines = vec![text.trim_start_matches(": ").to_owned()];
    lines.extend(field_errors(record.details.as_deref()));
    lines.extend(record.cancel_requested.then(|| "cancel requested while it ran".to_owned()));
    let ink = if line.state == CallState::Succeeded { Ink::Green } else { Ink::Red };
    Entry::new(line.state.as_str(), ink, lines.join("\n"))
}

fn late_report(late: &LateReport) -> Entry {
    let LateReport { attempt, worker, outcome, .. } = late;
    let text = format!("ignored: attempt {attempt} by worker {worker} reported {outcome}");
    Entry::new("late report", Ink::Dim, text)
}

/// Returns a line for each field error. Details that cannot be parsed are shown unchanged.
fn field_errors(json: Option<&RawValue>) -> Vec<String> {
    let Some(json) = json else { return Vec::new() };
    match serde_json::from_str::<Vec<FieldError>>(json.get()) {
        Ok(errors) => errors.iter().map(text::field_error).collect(),
        Err(_) => vec![limits::shorten(&json_text::one_line(json.get()), HUGE)],
    }
}

/// Says what of the conversation the model did not see, if anything.
fn view(call: &CallAudit) -> Option<Entry> {
    let trimmed = serde_json::from_str::<TurnRequest>(call.arguments.get()).ok()?.trimmed;
    if trimmed.shortened == 0 && trimmed.left_out == 0 {
        return None;
    }
    let text = format!(
        "cut to about {} tokens; results shortened: {}, messages left out: {}",
        trimmed.tokens, trimmed.shortened, trimmed.left_out
    );
    Some(Entry::new("view", Ink::Dim, text))
}

fn usage(call: &CallAudit) -> Option<Entry> {
    let reply: TurnReply = serde_json::from_str(result(call)?.get()).ok()?;
    let usage = reply.usage.counted();
    let mut parts = vec![totals::tokens(&usage)];
    parts.extend(totals::cost(&usage));
    parts.extend(Some(reply.model).filter(|model| !model.is_empty()).map(|model| output::plain(&model)));
    Some(Entry::new("usage", Ink::Dim, parts.join(", ")))
}

/// Says that a reply ended at the model's limit of tokens.
fn cut_off(call: &CallAudit) -> Option<Entry> {
    let reply: TurnReply = serde_json::from_str(result(call)?.get()).ok()?;
    let text = "the reply ended at the model's limit of tokens; its end is missing";
    (reply.finish == Finish::Length).then(|| Entry::new("cut off", Ink::Yellow, text))
}

/// Returns the result as people read it.
pub(crate) fn shown_result(record: &CallAudit) -> Option<String> {
    result(record).map(|result| readable(result.get(), LARGE))
}

/// Returns the result of the last attempt that has one.
pub(crate) fn result(record: &CallAudit) -> Option<&RawValue> {
    record.attempts_made.iter().rev().find_map(|attempt| attempt.output.as_deref())
}
