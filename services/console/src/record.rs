//! What the API says of a task's calls.

use chrono::{DateTime, Utc};
use redial_proto::{Repair, WaitReason, Waiting, turn};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    failure::Failure,
    page::Visit,
    show::{self, Html},
};

/// Pages of calls that a timeline reads at most.
const PAGES: usize = 6;

/// `GET /v1/tasks/{id}/calls`.
#[derive(Deserialize)]
struct CallPage {
    calls: Vec<CallItem>,
    #[serde(default)]
    next_page_token: String,
}

/// A call of a task.
#[derive(Debug, Deserialize)]
pub(crate) struct CallItem {
    pub(crate) call: String,
    pub(crate) turn: u32,
    pub(crate) call_index: u32,
    pub(crate) tool: String,
    pub(crate) state: String,
    pub(crate) message: Option<String>,
    #[serde(default)]
    pub(crate) effect: String,
    pub(crate) submitted_at: DateTime<Utc>,
    pub(crate) finished_at: Option<DateTime<Utc>>,
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    pub(crate) waits: Option<Waiting>,
    pub(crate) arguments: Option<Box<RawValue>>,
    /// The arguments as the model wrote them.
    pub(crate) sent: Option<String>,
    #[serde(default)]
    pub(crate) repairs: Vec<Repair>,
    /// How often the tool ran: see [`ledger`].
    pub(crate) ran: String,
    pub(crate) lease_until: Option<DateTime<Utc>>,
    pub(crate) redriven_as: Option<String>,
    #[serde(default)]
    pub(crate) attempts_made: Vec<Attempt>,
}

/// An attempt of a call.
#[derive(Debug, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) attempt: u32,
    pub(crate) worker: String,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) ended_at: Option<DateTime<Utc>>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) class: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) retry_at: Option<DateTime<Utc>>,
}

/// The calls of a task from this turn on. The second value is true if there are more than a timeline shows.
pub(crate) async fn calls(visit: &Visit, task: &str, turn: u32) -> Result<(Vec<CallItem>, bool), Failure> {
    let first = if turn > 1 { turn.to_string() } else { String::new() };
    let mut calls = Vec::new();
    let mut token = String::new();
    for _ in 0..PAGES {
        let query =
            crate::page::query([("from_turn", first.as_str()), ("page_token", token.as_str()), ("page_size", "200")]);
        let page: CallPage = visit.api.get(&format!("/v1/tasks/{task}/calls{query}")).await?;
        calls.extend(page.calls);
        token = page.next_page_token;
        if token.is_empty() {
            return Ok((calls, false));
        }
    }
    Ok((calls, true))
}

impl CallItem {
    pub(crate) fn is_unknown(&self) -> bool {
        self.state == "unknown"
    }

    /// The model, if it is a turn.
    pub(crate) fn model(&self) -> Option<&str> {
        turn::model_name(&self.tool)
    }

    /// The anchor of its lane.
    pub(crate) fn lane(&self) -> String {
        if self.call_index == 0 { format!("t{}", self.turn) } else { format!("c{}.{}", self.turn, self.call_index) }
    }

    /// Where it stands while it has not ended, and what decided that.
    pub(crate) fn standing(&self) -> Option<String> {
        if let Some(waits) = &self.waits {
            return Some(waiting(waits));
        }
        let class = self.attempts_made.iter().rev().find_map(|attempt| attempt.class.as_deref());
        match self.state.as_str() {
            "retry_wait" => {
                let due =
                    self.next_attempt_at.map(|at| format!(", due {}", at.format("%H:%M:%S UTC"))).unwrap_or_default();
                let class = class.map(|class| format!(" after {}", show::words(class))).unwrap_or_default();
                Some(format!("held for a retry{class}{due} (the tool's retry policy)"))
            }
            "running" => {
                let last = self.attempts_made.last()?;
                Some(format!("attempt {} runs on {}", last.attempt, last.worker))
            }
            "ready" => Some("waits for a worker".to_owned()),
            "client_wait" => Some("waits for the client's answer".to_owned()),
            _ => None,
        }
    }

    /// One attempt that ended with success needs no table.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.attempts_made.as_slice(), [one] if one.class.is_none() && one.ended_at.is_some())
    }

    /// What the effect ledger says.
    pub(crate) fn ledger(&self) -> (&'static str, &'static str) {
        ledger(&self.ran)
    }

    /// The arguments as the tool gets them.
    pub(crate) fn arguments_tree(&self) -> Html {
        let name = format!("{}-args", self.lane());
        self.arguments.as_deref().map(|json| crate::json::of_raw(&name, json)).unwrap_or_default()
    }
}

/// The glyph and the words of the effect ledger for what the API calls `ran`.
pub(crate) fn ledger(ran: &str) -> (&'static str, &'static str) {
    match ran {
        "not_ended" => ("waiting", "not ended"),
        "not_run" => ("not_run", "never ran"),
        "once" => ("once", "ran once"),
        "again_same_key" => ("again", "ran again with the same key"),
        "again" => ("again", "ran again"),
        "stopped" => ("cancelled", "stopped after it had begun"),
        "unknown" => ("unknown", "unknown: look"),
        _ => ("waiting", "not known to this version"),
    }
}

/// What a call waits for, since when, and until about when.
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

impl Attempt {
    /// In words.
    pub(crate) fn told(&self) -> String {
        let took = self.took().unwrap_or_else(|| "runs".to_owned());
        let took = self.tool_ran().map_or(took.clone(), |ran| format!("{took}, of which the tool ran {ran}"));
        let class = self.class.as_deref().map(|class| format!(", {}", show::words(class))).unwrap_or_default();
        format!("attempt {} on {}: {took}{class}", self.attempt, self.worker)
    }

    /// From the grant to the end that is on record.
    pub(crate) fn took(&self) -> Option<String> {
        self.ended_at.map(|end| show::span((end - self.started_at).num_milliseconds()))
    }

    /// How long the tool ran, by the worker's clock.
    pub(crate) fn tool_ran(&self) -> Option<String> {
        self.duration_ms.map(|ms| show::span(i64::try_from(ms).unwrap_or(i64::MAX)))
    }
}
