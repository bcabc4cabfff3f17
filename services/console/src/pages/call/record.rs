//! What to know of a call before anything else.

use chrono::{DateTime, Utc};
use redial_api::CallRecord;
use redial_proto::{CallState, CallView, ErrorClass, turn};

use crate::{record::waiting, show, story::verdict::Verdict};

/// Says whether the API would run it again: it ended badly, and is no turn and no function of a client.
pub(crate) fn may_run_again(call: &CallRecord) -> bool {
    use CallState::{Cancelled, Failed, Refused, Unknown};
    matches!(call.view.state, Failed | Unknown | Cancelled | Refused)
        && turn::model_name(&call.view.tool).is_none()
        && call.details.pool != "@client"
}

/// Says what to know before anything else.
pub(crate) fn verdict(call: &CallView, now: DateTime<Utc>) -> Verdict {
    let said = call.message.clone().unwrap_or_default();
    let class = call.class.map(|class| show::words(class.as_str())).unwrap_or_default();
    let rules = crate::story::why::rules(&call.details);
    let because = if rules.is_empty() { said } else { rules };
    let verdict = |tone, heading: String, because: String, remedy: &str| Verdict {
        tone,
        heading,
        because,
        remedy: remedy.to_owned(),
        lane: None,
    };
    match call.state {
        CallState::Succeeded => {
            let took = call.finished_at.map(|end| show::span((end - call.submitted_at).num_milliseconds()));
            let repaired =
                if call.repairs.is_empty() { "" } else { "; its arguments were repaired in code before it ran" };
            let attempts = show::things(call.attempts, "attempt");
            verdict(
                "good",
                "Succeeded".to_owned(),
                format!("{attempts}, in {}{repaired}.", took.unwrap_or_default()),
                "",
            )
        }
        CallState::Failed => verdict("bad", format!("Failed: {class}"), because, remedy(call.class)),
        CallState::Refused => verdict("bad", format!("Never ran: {class}"), because, remedy(call.class)),
        CallState::Cancelled => verdict("warn", "Stopped".to_owned(), because, ""),
        CallState::Unknown => verdict(
            "odd",
            format!("Nobody knows whether {} did its work", call.tool),
            because,
            "Look at what the tool did. If it did nothing, run the call again; if it did its work, leave it. Redial does not run it \
             twice on a guess.",
        ),
        _ => open(call, now),
    }
}

fn open(call: &CallView, now: DateTime<Utc>) -> Verdict {
    let since = show::span((now - call.submitted_at).num_milliseconds().max(0));
    let last = call.attempts_made.last();
    let heading = match call.state {
        CallState::Running => "Runs".to_owned(),
        CallState::RetryWait => "Waits for a retry".to_owned(),
        CallState::ClientWait => "Waits for the client's answer".to_owned(),
        _ => "Waits for a worker".to_owned(),
    };
    let because = match (&call.waits, last) {
        (Some(waits), _) => waiting(waits),
        (None, Some(last)) if call.state == CallState::Running => {
            let unheard = last.unheard_since.map(|at| format!(" It was not heard since {}.", show::exact(&at)));
            format!("Attempt {} on {}.{}", last.attempt, last.worker, unheard.unwrap_or_default())
        }
        (None, _) => {
            let due = call.next_attempt_at.map(|at| format!("The next attempt is due {}.", show::exact(&at)));
            let failed = last.and_then(|last| last.message.clone()).map(|message| format!(" The last one: {message}"));
            format!("{}{}", due.unwrap_or_default(), failed.unwrap_or_default())
        }
    };
    let tone = if call.state == CallState::RetryWait { "warn" } else { "" };
    Verdict { tone, heading: format!("{heading}, since {since}"), because, ..Verdict::default() }
}

const fn remedy(class: Option<ErrorClass>) -> &'static str {
    use ErrorClass as C;
    let Some(class) = class else { return "Look at the attempts below." };
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
