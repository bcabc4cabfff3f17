//! Texts that events of tasks and of calls share, and text from outside made fit for a terminal.

use chrono::{DateTime, TimeDelta, Utc};
use redial_proto::{FieldError, WaitReason, Waiting, json_text, limits};

use crate::output;

/// Bytes of a text that are shown; `--json` prints all of it.
const LONGEST: usize = 2000;
/// Bytes that are shown of a value that broke a rule, and of the first line of an error that led to a retry.
const SHORT: usize = 200;

/// Cuts a text of any form if it is huge, without an empty line at either end.
pub(crate) fn excerpt(text: &str) -> String {
    let text = output::plain(text.trim());
    if text.len() <= LONGEST {
        return text;
    }
    format!("{}\n{} bytes in all; --json prints them", limits::shorten(&text, LONGEST), text.len())
}

/// Writes JSON on one line; text that is not JSON unchanged.
pub(crate) fn json(text: &str) -> String {
    match serde_json::from_str::<&serde_json::value::RawValue>(text) {
        Ok(raw) => excerpt(&json_text::one_line(raw.get())),
        Err(_) => excerpt(text),
    }
}

/// Writes a field error on one line.
pub(crate) fn field_error(error: &FieldError) -> String {
    let FieldError { path, rule, allowed, hint, .. } = error;
    let path = if path.is_empty() { "the arguments" } else { path };
    let problem = match (error.was_sent(), rule.as_str()) {
        (Some(sent), rule) => {
            format!("{rule}; sent {}", limits::shorten(&json_text::one_line(&sent.to_string()), SHORT))
        }
        (None, "required") => "missing".to_owned(),
        (None, rule) => format!("{rule}; nothing was sent"),
    };
    let hint = hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    output::plain(&format!("{path}: {problem}; allowed: {allowed}{hint}"))
}

/// Says how an attempt or a call ended: `failed after 97 ms: unavailable: HTTP 503`.
pub(crate) fn ended(outcome: &str, duration_ms: Option<i64>, class: Option<&str>, message: Option<&str>) -> String {
    let after = duration_ms.map(|ms| format!(" after {}", output::span(ms))).unwrap_or_default();
    format!("{outcome}{after}{}", because(class, message))
}

/// Writes `: unavailable: HTTP 503`, or nothing.
pub(crate) fn because(class: Option<&str>, message: Option<&str>) -> String {
    let parts = [class.map(str::to_owned), message.map(output::plain)];
    parts.into_iter().flatten().fold(String::new(), |text, part| text + ": " + &part)
}

/// Writes an attempt that failed, and when its retry is due; with the error's first line only, because `redial show
/// CALL` prints all of it.
pub(crate) fn retry(
    attempt: u32,
    class: Option<&str>,
    message: Option<&str>,
    next: DateTime<Utc>,
    now: DateTime<Utc>,
) -> String {
    let message = message.map(|message| limits::shorten(message.trim().lines().next().unwrap_or_default(), SHORT));
    let failed = ended("failed", None, class, message.as_deref());
    format!("attempt {attempt} {failed}\n{}", retry_due(next, now))
}

/// Says when a retry is due. It starts later if retries of its tool are held back, or no worker is free.
pub(crate) fn retry_due(due: DateTime<Utc>, now: DateTime<Utc>) -> String {
    format!("retry due at {}", time_and_span(due, now))
}

/// Writes a point in time after `now`, and the time until then.
pub(crate) fn time_and_span(time: DateTime<Utc>, now: DateTime<Utc>) -> String {
    format!("{} (in {})", output::time(time), span(time - now))
}

/// Says how long after the start.
pub(crate) fn offset(start: DateTime<Utc>, at: DateTime<Utc>) -> String {
    format!("+{}", span(at - start))
}

/// Rounds a span of time to ms like the spans that the database computes.
pub(crate) fn span(span: TimeDelta) -> String {
    let us = span.num_microseconds().unwrap_or(i64::MAX - 500);
    output::span((us + 500).max(0) / 1000)
}

/// Says what a ready call waits for, and since when.
pub(crate) fn waiting(waits: &Waiting, tool: &str, pool: &str, now: DateTime<Utc>) -> String {
    let since = |at: DateTime<Utc>| format!("since {} ({})", output::time(at), span(now - at));
    let reason = match waits.reason {
        WaitReason::Queue if pool.is_empty() => format!("in the queue for a free worker that has the tool {tool}"),
        WaitReason::Queue => format!("for a free worker of pool {pool}"),
        WaitReason::Backlog => format!("in the backlog: other calls of {tool} are before it"),
        WaitReason::Worker => format!("for a worker that has the tool {tool}"),
        WaitReason::Retries => format!("for its retry: {}", held_back(waits, tool, now)),
    };
    let seen = match (waits.reason, waits.worker_last_seen_at) {
        (WaitReason::Worker, Some(at)) => format!(" (one was last seen at {})", output::time(at)),
        _ => String::new(),
    };
    if waits.since > now {
        return format!("{reason}{seen}; it is due at {}", time_and_span(waits.since, now));
    }
    format!("{reason}{seen}; it has waited {}", since(waits.since))
}

/// Says what holds a retry back, since when, and until about when.
fn held_back(waits: &Waiting, tool: &str, now: DateTime<Utc>) -> String {
    let since = |at: DateTime<Utc>| format!("since {} ({})", output::time(at), span(now - at));
    let rate = waits.retries_per_second.map_or_else(|| "a few retries".to_owned(), retries);
    let why = match (waits.failing_since, waits.recovering_since) {
        (Some(at), _) => format!(" while it fails, {}", since(at)),
        (None, Some(at)) => format!(" while it recovers, {}", since(at)),
        (None, None) => String::new(),
    };
    let before = match waits.retries_before {
        Some(0) => String::new(),
        Some(1) => "; 1 retry is before it".to_owned(),
        Some(count) => format!("; {count} retries are before it"),
        None => "; how many are before it is unknown".to_owned(),
    };
    let turn =
        waits.until_about.filter(|at| *at > now).map(|at| format!("; its turn is about {}", time_and_span(at, now)));
    format!("{tool} gets {rate}{why}{before}{}", turn.unwrap_or_default())
}

pub(crate) fn retries(per_second: f64) -> String {
    match per_second {
        rate if rate < 0.95 => format!("1 retry every {}", output::span(as_ms(1.0 / rate))),
        rate if rate < 1.5 => "1 retry/s".to_owned(),
        rate => format!("{rate:.0} retries/s"),
    }
}

fn as_ms(seconds: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "a cast saturates")]
    let ms = (seconds * 1_000.0) as i64;
    ms
}
