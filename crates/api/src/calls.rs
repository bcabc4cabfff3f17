//! Calls: as they are listed, and with everything on record about them.

use chrono::{DateTime, Utc};
use redial_proto::{CallId, CallState, CallView, ErrorClass, TaskId, ToolEffect, names};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::value::RawValue;

/// A part of the calls.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallList {
    /// Newest first.
    pub calls: Vec<CallItem>,
    /// For the next page; empty at the end. A page may have few calls, or none, and a next one: then the search looked at as many
    /// calls as one request may.
    pub next_page_token: String,
    /// How far this request looked.
    pub searched: SearchedCalls,
}

crate::parts!(CallList, calls: CallItem);

/// How far a search looked.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SearchedPart")]
pub struct SearchedCalls {
    /// Calls of the tenant that this request looked at.
    pub calls: u64,
    /// When the last one of them was submitted.
    pub back_to: Option<DateTime<Utc>>,
    /// No call is left: `next_page_token` is empty.
    pub complete: bool,
}

/// A call in a list; `GET /v1/calls/{id}` has everything.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallItem {
    /// Its id.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// Its state.
    #[serde(deserialize_with = "names::shown")]
    pub state: CallState,
    /// Why it ended without success.
    #[serde(default, deserialize_with = "names::known")]
    #[schemars(!default)]
    pub class: Option<ErrorClass>,
    /// The same in words.
    pub message: Option<String>,
    /// Attempts that were started.
    pub attempts: u32,
    /// When it was accepted.
    pub submitted_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// From submission to end, in ms.
    pub total_ms: Option<i64>,
    /// When its retry is due.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// The conversation.
    pub conversation: Option<String>,
    /// The idempotency key.
    pub key: Option<String>,
    /// The worker that ran, or runs, its last attempt.
    pub last_worker: Option<String>,
    /// The call that runs this one again.
    pub redriven_as: Option<CallId>,
}

/// A call with everything on record about it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CallRecord {
    /// As whoever submitted it sees it.
    #[serde(flatten)]
    pub view: CallView,
    /// What else is on record.
    #[serde(flatten)]
    pub details: CallDetails,
}

/// What is on record about a call besides what whoever submitted it sees.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallDetails {
    /// As the tool gets them: as sent, but for the repairs.
    #[schemars(with = "serde_json::Value")]
    pub arguments: Box<RawValue>,
    /// What the tool does to the world; decides whether the call is retried when nobody knows how an attempt ended.
    pub effect: ToolEffect,
    /// How often the tool ran.
    pub ran: Ran,
    /// The pool whose workers run it.
    pub pool: String,
    /// No attempt starts later.
    pub deadline_at: DateTime<Utc>,
    /// Somebody asked to stop it while it ran.
    pub cancel_requested: bool,
    /// The idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The task that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The turn of the task that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// Its number within the turn, from 1; 0 is the turn itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_index: Option<u32>,
    /// The ended call that this one runs again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redrive_of: Option<CallId>,
    /// The call that runs this one again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redriven_as: Option<CallId>,
    /// Reports that arrived too late to count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_reports: Vec<LateReport>,
}

impl<'de> Deserialize<'de> for CallRecord {
    /// Serde cannot read raw JSON in a part of an object, so each part is read of the whole.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let whole = Box::<RawValue>::deserialize(deserializer)?;
        let view = serde_json::from_str(whole.get()).map_err(D::Error::custom)?;
        let details = serde_json::from_str(whole.get()).map_err(D::Error::custom)?;
        Ok(Self { view, details })
    }
}

/// A report that arrived too late to count.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LateReport {
    /// Of which attempt.
    pub attempt: i32,
    /// The worker that sent it.
    pub worker: String,
    /// When it arrived.
    pub received_at: DateTime<Utc>,
    /// `succeeded`, or the error class.
    pub outcome: String,
}

/// Where the calls stand now.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct WaitReply {
    /// True if what was waited for has happened.
    pub done: bool,
    /// The calls, in the order of the request.
    pub calls: Vec<CallStanding>,
}

/// Where a call stands.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallStanding {
    /// The call.
    pub call: CallId,
    /// Its state.
    #[serde(deserialize_with = "names::shown")]
    pub state: CallState,
    /// Whether it has ended.
    pub ended: bool,
}

/// How often a call's tool ran, as far as anybody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ran {
    /// It has not ended, so this is not decided.
    NotEnded,
    /// No attempt was started.
    NotRun,
    /// One attempt.
    Once,
    /// Several attempts, all with the same idempotency key: the tool does its work once for all of them.
    AgainSameKey,
    /// Several attempts of a tool that may run again, or whose earlier attempts are known to have done nothing.
    Again,
    /// It was cancelled after an attempt had started: how much the tool did before it stopped is not known.
    Stopped,
    /// An attempt of an `unsafe` tool ended without anybody knowing whether it did its work.
    Unknown,
    /// What a newer gateway says and this version does not know.
    #[serde(other)]
    #[schemars(skip)]
    Other,
}

/// What the ledger says of a call that was given so many attempts.
pub const fn ran(state: CallState, effect: ToolEffect, attempts: u32) -> Ran {
    match (state, attempts, effect) {
        (CallState::Unknown, ..) => Ran::Unknown,
        (
            CallState::Ready | CallState::Running | CallState::RetryWait | CallState::ClientWait | CallState::Other,
            ..,
        ) => Ran::NotEnded,
        (_, 0, _) => Ran::NotRun,
        (CallState::Cancelled, ..) => Ran::Stopped,
        (_, 1, _) => Ran::Once,
        (.., ToolEffect::Keyed) => Ran::AgainSameKey,
        (.., ToolEffect::Read | ToolEffect::Idempotent | ToolEffect::Unsafe) => Ran::Again,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_ledger_says() {
        for (state, effect, attempts, expected) in [
            (CallState::Refused, ToolEffect::Unsafe, 0, Ran::NotRun),
            (CallState::Ready, ToolEffect::Keyed, 0, Ran::NotEnded),
            (CallState::Running, ToolEffect::Keyed, 1, Ran::NotEnded),
            (CallState::RetryWait, ToolEffect::Read, 2, Ran::NotEnded),
            (CallState::Cancelled, ToolEffect::Keyed, 0, Ran::NotRun),
            (CallState::Cancelled, ToolEffect::Read, 1, Ran::Stopped),
            (CallState::Failed, ToolEffect::Read, 1, Ran::Once),
            (CallState::Succeeded, ToolEffect::Keyed, 3, Ran::AgainSameKey),
            (CallState::Succeeded, ToolEffect::Idempotent, 2, Ran::Again),
            (CallState::Failed, ToolEffect::Unsafe, 2, Ran::Again),
            (CallState::Unknown, ToolEffect::Unsafe, 1, Ran::Unknown),
        ] {
            assert_eq!(ran(state, effect, attempts), expected, "{state} {effect:?} {attempts}");
        }
    }
}
