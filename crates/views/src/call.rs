//! What is on record of a call, as users see it.

use std::collections::BTreeMap;

use redial_engine::feedback::{self, CallFailure, MAX_FEEDBACK, Words};
use redial_proto::{AttemptView, CallState, CallView, ErrorClass, Failure, Help, Language, Repair};
use redial_store::audit::{AttemptRecord, CallAudit};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

/// Attempts that a view holds.
const ATTEMPTS: usize = 20;
/// Bytes of each list in a view.
const LIST: usize = 64 * 1024;

/// Shows a call as users see it. What this version cannot read of it is shown as unknown, or left out.
pub fn call_view(record: CallAudit, language: Language) -> CallView {
    let state = record.line.state;
    let attempts_made = attempts(&record.attempts_made);
    let CallAudit {
        line, submitted_by, arguments, details, repairs, undeclared, help, waits, attempts_made: made, ..
    } = record;
    let (repairs, undeclared) = (list::<Repair>(repairs.as_deref()), list::<String>(undeclared.as_deref()));
    let help = help.and_then(|help| serde_json::from_str::<Help>(help.get()).ok());
    let help = help.map(|help| help.with_lists(repairs.clone(), undeclared.clone()));
    let last = made.into_iter().rev().find(|attempt| attempt.ended_at.is_some());
    let (last_class, last_message, last_details, output) =
        last.map_or((None, None, None, None), |last| (last.class, last.message, last.details, last.output));
    let class = line.class.or(last_class.as_deref().and_then(known));
    let message = line.message.or(last_message);
    let details = list(details.or(last_details).as_deref());
    let feedback = class.filter(|_| state.is_terminal()).map(|class| {
        let failure = Failure {
            effect_possible: state == CallState::Unknown,
            details: details.clone(),
            ..Failure::new(class, message.clone().unwrap_or_default())
        };
        let help = help.as_ref();
        feedback(CallFailure { sent: arguments.get(), help, ..CallFailure::new(&line.tool, &failure) }, language)
    });
    CallView {
        call: line.call,
        tool: line.tool,
        state,
        attempts: line.attempts,
        submitted_at: line.submitted_at,
        submitted_by,
        next_attempt_at: line.next_attempt_at,
        waits,
        finished_at: line.finished_at,
        output,
        class,
        message,
        details,
        repairs,
        undeclared,
        attempts_made,
        feedback,
    }
}

/// Returns what a model gets as the result of a call that failed.
pub fn feedback(failed: CallFailure<'_>, language: Language) -> Box<RawValue> {
    let words = Words { language, templates: &BTreeMap::new() };
    let content = feedback::call_failure(words, failed, MAX_FEEDBACK);
    // It is JSON; nothing else could be shown of it.
    RawValue::from_string(content).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn attempts(made: &[AttemptRecord]) -> Vec<AttemptView> {
    made[made.len().saturating_sub(ATTEMPTS)..].iter().map(attempt_view).collect()
}

pub fn attempt_view(one: &AttemptRecord) -> AttemptView {
    AttemptView {
        attempt: u32::try_from(one.attempt).unwrap_or(0),
        worker: one.worker.clone(),
        started_at: one.started_at,
        ended_at: one.ended_at,
        duration_ms: one.duration_ms.and_then(|ms| u64::try_from(ms).ok()),
        class: one.class.as_deref().and_then(known),
        message: one.message.clone(),
        retry_at: one.retry_at,
        unheard_since: one.unheard_since,
    }
}

/// Reads a class that this version knows. Another one is left out: the message says what it is.
fn known(class: &str) -> Option<ErrorClass> {
    class.parse().ok()
}

/// Reads the first entries of a list, as far as they take [`LIST`] bytes; none of one that this version cannot read.
fn list<T: DeserializeOwned + Serialize>(json: Option<&RawValue>) -> Vec<T> {
    let Some(json) = json else { return Vec::new() };
    let mut entries: Vec<T> = serde_json::from_str(json.get()).unwrap_or_default();
    if json.get().len() > LIST {
        let mut bytes = 0;
        let fit = entries.iter().take_while(|entry| {
            bytes += serde_json::to_string(entry).map_or(LIST, |text| text.len());
            bytes <= LIST
        });
        let fit = fit.count();
        entries.truncate(fit);
    }
    entries
}
