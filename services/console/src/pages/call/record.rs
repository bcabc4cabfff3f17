//! What the API says of a call.

use chrono::{DateTime, Utc};
use redial_proto::{AttemptView, ErrorClass, FieldError, Repair, Waiting, turn};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    record::{Attempt, CallItem, waiting},
    show::{self, Html},
    story::verdict::Verdict,
};

/// `GET /v1/calls/{id}`.
#[derive(Debug, Deserialize)]
pub(crate) struct CallRecord {
    pub(crate) call: String,
    pub(crate) tool: String,
    pub(crate) state: String,
    pub(crate) attempts: u32,
    pub(crate) submitted_at: DateTime<Utc>,
    pub(crate) submitted_by: Option<String>,
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    pub(crate) waits: Option<Waiting>,
    pub(crate) finished_at: Option<DateTime<Utc>>,
    pub(crate) output: Option<Box<RawValue>>,
    pub(crate) class: Option<String>,
    pub(crate) message: Option<String>,
    #[serde(default)]
    pub(crate) details: Vec<FieldError>,
    #[serde(default)]
    pub(crate) repairs: Vec<Repair>,
    #[serde(default)]
    pub(crate) undeclared: Vec<String>,
    #[serde(default)]
    pub(crate) attempts_made: Vec<AttemptView>,
    pub(crate) feedback: Option<Box<RawValue>>,
    pub(crate) arguments: Box<RawValue>,
    pub(crate) effect: String,
    pub(crate) ran: String,
    pub(crate) pool: String,
    pub(crate) deadline_at: DateTime<Utc>,
    #[serde(default)]
    pub(crate) cancel_requested: bool,
    pub(crate) key: Option<String>,
    pub(crate) conversation: Option<String>,
    pub(crate) task: Option<String>,
    pub(crate) turn: Option<u32>,
    pub(crate) call_index: Option<u32>,
    pub(crate) redrive_of: Option<String>,
    pub(crate) redriven_as: Option<String>,
    #[serde(default)]
    pub(crate) late_reports: Vec<LateReport>,
}

/// A report that arrived too late to count.
#[derive(Debug, Deserialize)]
pub(crate) struct LateReport {
    pub(crate) attempt: i32,
    pub(crate) worker: String,
    pub(crate) received_at: DateTime<Utc>,
    pub(crate) outcome: String,
}

impl CallRecord {
    pub(crate) const fn has_ended(&self) -> bool {
        self.finished_at.is_some()
    }

    /// Whether the API would run it again: it ended badly, and is no turn and no function of a client.
    pub(crate) fn may_run_again(&self) -> bool {
        matches!(self.state.as_str(), "failed" | "unknown" | "cancelled" | "refused")
            && self.model().is_none()
            && self.pool != "@client"
    }

    /// The model, if it is a turn.
    pub(crate) fn model(&self) -> Option<&str> {
        turn::model_name(&self.tool)
    }

    /// As a timeline shows it.
    pub(crate) fn timed(&self) -> CallItem {
        let attempt = |made: &AttemptView| Attempt {
            attempt: made.attempt,
            worker: made.worker.clone(),
            started_at: made.started_at,
            ended_at: made.ended_at,
            duration_ms: made.duration_ms,
            class: made.class.map(|class| class.as_str().to_owned()),
            message: made.message.clone(),
            retry_at: made.retry_at,
        };
        CallItem {
            call: self.call.clone(),
            turn: 0,
            call_index: 1,
            tool: self.tool.clone(),
            state: self.state.clone(),
            message: self.message.clone(),
            effect: self.effect.clone(),
            submitted_at: self.submitted_at,
            finished_at: self.finished_at,
            next_attempt_at: self.next_attempt_at,
            waits: self.waits,
            lease_until: None,
            arguments: None,
            sent: None,
            repairs: Vec::new(),
            ran: self.ran.clone(),
            redriven_as: self.redriven_as.clone(),
            attempts_made: self.attempts_made.iter().map(attempt).collect(),
        }
    }

    /// What to know before anything else.
    pub(crate) fn verdict(&self, now: DateTime<Utc>) -> Verdict {
        let said = self.message.clone().unwrap_or_default();
        let class = self.class.as_deref().map(show::words).unwrap_or_default();
        let rules = crate::story::why::rules(&self.details);
        let because = if rules.is_empty() { said } else { rules };
        let verdict = |tone, heading: String, because: String, remedy: &str| Verdict {
            tone,
            heading,
            because,
            remedy: remedy.to_owned(),
            lane: None,
        };
        match self.state.as_str() {
            "succeeded" => {
                let took = self.finished_at.map(|end| show::span((end - self.submitted_at).num_milliseconds()));
                let repaired =
                    if self.repairs.is_empty() { "" } else { "; its arguments were repaired in code before it ran" };
                let attempts = show::things(self.attempts, "attempt");
                verdict(
                    "good",
                    "Succeeded".to_owned(),
                    format!("{attempts}, in {}{repaired}.", took.unwrap_or_default()),
                    "",
                )
            }
            "failed" => verdict("bad", format!("Failed: {class}"), because, remedy(self.class.as_deref())),
            "refused" => verdict("bad", format!("Never ran: {class}"), because, remedy(self.class.as_deref())),
            "cancelled" => verdict("warn", "Stopped".to_owned(), because, ""),
            "unknown" => verdict(
                "odd",
                format!("Nobody knows whether {} did its work", self.tool),
                because,
                "Look at what the tool did. If it did nothing, run the call again; if it did its work, leave it. Redial does not run it \
                 twice on a guess.",
            ),
            state => self.open(state, now),
        }
    }

    fn open(&self, state: &str, now: DateTime<Utc>) -> Verdict {
        let since = show::span((now - self.submitted_at).num_milliseconds().max(0));
        let last = self.attempts_made.last();
        let heading = match state {
            "running" => "Runs".to_owned(),
            "retry_wait" => "Waits for a retry".to_owned(),
            "client_wait" => "Waits for the client's answer".to_owned(),
            _ => "Waits for a worker".to_owned(),
        };
        let because = match (&self.waits, last) {
            (Some(waits), _) => waiting(waits),
            (None, Some(last)) if state == "running" => {
                let unheard = last.unheard_since.map(|at| format!(" It was not heard since {}.", show::exact(&at)));
                format!("Attempt {} on {}.{}", last.attempt, last.worker, unheard.unwrap_or_default())
            }
            (None, _) => {
                let due = self.next_attempt_at.map(|at| format!("The next attempt is due {}.", show::exact(&at)));
                let failed =
                    last.and_then(|last| last.message.clone()).map(|message| format!(" The last one: {message}"));
                format!("{}{}", due.unwrap_or_default(), failed.unwrap_or_default())
            }
        };
        let tone = if state == "retry_wait" { "warn" } else { "" };
        Verdict { tone, heading: format!("{heading}, since {since}"), because, ..Verdict::default() }
    }

    pub(crate) fn arguments(&self) -> Html {
        crate::json::of_raw("args", &self.arguments)
    }

    pub(crate) fn result(&self) -> Option<Html> {
        self.output.as_deref().map(|output| crate::json::of_raw("out", output))
    }

    pub(crate) fn told(&self) -> Option<Html> {
        self.feedback.as_deref().map(|feedback| crate::json::of_raw("told", feedback))
    }
}

/// What a person can do about an error class.
fn remedy(class: Option<&str>) -> &'static str {
    use ErrorClass as C;
    let Some(class) = class.and_then(|class| class.parse().ok()) else { return "Look at the attempts below." };
    match class {
        C::InvalidArguments | C::MalformedArguments => {
            "Run it again with other arguments; if models send this often, mend the tool's description."
        }
        C::RepeatedCall => {
            "The model sent a call again that had failed before: the earlier call says why. If models do that often, mend what the tool \
             tells them."
        }
        C::UnknownTool => "Start a worker that has the tool, or correct the name.",
        C::BusinessRule => "The tool refused for a reason of its own: change what was asked for.",
        C::Unavailable | C::Timeout | C::RateLimited | C::Lost => {
            "It is over now: once the tool is well again, run the call again."
        }
        C::Unanswered => {
            "The client did not answer its function in time: look at the client, then submit the task again."
        }
        C::Auth | C::Configuration => "Mend the tool's credentials or settings, then run the call again.",
        C::OutputInvalid | C::OutputTooLarge => "Mend the tool's output, or its declared schema.",
        C::Rejected => "The service refused what was sent, and would again: correct the arguments, then run it again.",
        C::BudgetExhausted => {
            "Its deadline passed before an attempt succeeded: run it again, or give such calls more time."
        }
        C::ToolFailed => "The tool says only that it failed: look at its logs, then run the call again.",
        C::Internal => "This is a fault of Redial or of the worker: look at the worker's log.",
        C::Cancelled => "",
    }
}
