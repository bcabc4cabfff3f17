//! What the API says of a task's calls.

use chrono::Utc;
use redial_api::{Ran, TaskCallItem, TaskCallList};
use redial_proto::{AttemptView, CallState, WaitReason, Waiting};

use crate::{
    failure::Failure,
    page::Visit,
    show::{self, Html},
};

/// Pages of calls that a timeline reads at most.
const PAGES: usize = 6;

/// Reads the calls of a task from this turn on. The second value is true if there are more than a timeline shows.
pub(crate) async fn calls(visit: &Visit, task: &str, turn: u32) -> Result<(Vec<TaskCallItem>, bool), Failure> {
    let first = if turn > 1 { turn.to_string() } else { String::new() };
    let mut calls = Vec::new();
    let mut token = String::new();
    for _ in 0..PAGES {
        let query =
            crate::page::query([("from_turn", first.as_str()), ("page_token", token.as_str()), ("page_size", "200")]);
        let page: TaskCallList = visit.api.get(&format!("/v1/tasks/{task}/calls{query}")).await?;
        calls.extend(page.calls);
        token = page.next_page_token;
        if token.is_empty() {
            return Ok((calls, false));
        }
    }
    Ok((calls, true))
}

pub(crate) fn lane(item: &TaskCallItem) -> String {
    if item.call_index == 0 { format!("t{}", item.turn) } else { format!("c{}.{}", item.turn, item.call_index) }
}

/// Says where a call stands while it has not ended, and what decided that.
pub(crate) fn standing(item: &TaskCallItem) -> Option<String> {
    if let Some(waits) = &item.waits {
        return Some(waiting(waits));
    }
    match item.state {
        CallState::RetryWait => {
            let due = item.next_attempt_at.map(|at| format!(", due {}", at.format("%H:%M:%S UTC"))).unwrap_or_default();
            let class = item.attempts_made.iter().rev().find_map(|attempt| attempt.class);
            let class = class.map(|class| format!(" after {}", show::words(class.as_str()))).unwrap_or_default();
            Some(format!("held for a retry{class}{due} (the tool's retry policy)"))
        }
        CallState::Running => {
            let last = item.attempts_made.last()?;
            Some(format!("attempt {} runs on {}", last.attempt, last.worker))
        }
        CallState::Ready => Some("waits for a worker".to_owned()),
        CallState::ClientWait => Some("waits for the client's answer".to_owned()),
        _ => None,
    }
}

/// Returns whether attempts need no table: it is one that ended with success.
pub(crate) fn is_plain(attempts: &[AttemptView]) -> bool {
    matches!(attempts, [one] if one.class.is_none() && one.ended_at.is_some())
}

/// Shows the arguments as the tool gets them.
pub(crate) fn arguments_tree(item: &TaskCallItem) -> Html {
    let name = format!("{}-args", lane(item));
    item.arguments.as_deref().map(|json| crate::json::of_raw(&name, json)).unwrap_or_default()
}

/// Returns the glyph and the words of the effect ledger.
pub(crate) const fn ledger(ran: &Ran) -> (&'static str, &'static str) {
    match ran {
        Ran::NotEnded => ("waiting", "not ended"),
        Ran::NotRun => ("not_run", "never ran"),
        Ran::Once => ("once", "ran once"),
        Ran::AgainSameKey => ("again", "ran again with the same key"),
        Ran::Again => ("again", "ran again"),
        Ran::Stopped => ("cancelled", "stopped after it had begun"),
        Ran::Unknown => ("unknown", "unknown: look"),
        Ran::Other => ("waiting", "not known to this version"),
    }
}

/// Says what a call waits for, since when, and until about when.
pub(crate) fn waiting(waits: &Waiting) -> String {
    let since = show::span((Utc::now() - waits.since).num_milliseconds().max(0));
    match waits.reason {
        WaitReason::Queue => format!("waits for a free worker since {since}"),
        WaitReason::Backlog => format!("waits behind other calls of its tool since {since}"),
        WaitReason::Worker => {
            let seen = waits.worker_last_seen_at.map(|at| format!("; one was last seen {}", show::exact(&at)));
            format!("no live worker has its tool, since {since}{}", seen.unwrap_or_default())
        }
        WaitReason::Retries => {
            let failing = waits.failing_since.map(|at| format!(", which fails since {}", show::exact(&at)));
            let before = waits.retries_before.map(|before| format!("; {} before it", show::things(before, "call")));
            let turn = waits.until_about.map(|at| format!("; its turn is about {}", show::exact(&at)));
            let parts = [failing, before, turn].map(Option::unwrap_or_default).concat();
            format!("retries of the tool are held back (its retry budget){parts}")
        }
    }
}

pub(crate) fn told(attempt: &AttemptView) -> String {
    let took = took(attempt).unwrap_or_else(|| "runs".to_owned());
    let took = tool_ran(attempt).map_or(took.clone(), |ran| format!("{took}, of which the tool ran {ran}"));
    let class = attempt.class.map(|class| format!(", {}", show::words(class.as_str()))).unwrap_or_default();
    format!("attempt {} on {}: {took}{class}", attempt.attempt, attempt.worker)
}

/// Measures from the grant to the end that is on record.
pub(crate) fn took(attempt: &AttemptView) -> Option<String> {
    attempt.ended_at.map(|end| show::span((end - attempt.started_at).num_milliseconds()))
}

/// Says how long the tool ran, by the worker's clock.
pub(crate) fn tool_ran(attempt: &AttemptView) -> Option<String> {
    attempt.duration_ms.map(|ms| show::span(i64::try_from(ms).unwrap_or(i64::MAX)))
}
