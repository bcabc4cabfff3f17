//! Running ended calls again: by their ids, and by a filter.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use strum::{VariantArray, VariantNames};

use crate::{CallId, CallState, ErrorClass, RedriveId, SubmitResult, names::named};

/// Asks to run ended calls again, each as a new call that refers to the old one. Sent as `calls.redrive`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedriveRequest {
    /// At most 1,000 calls in state `failed`, `cancelled` or `unknown`. Whoever names an `unknown` call
    /// confirms that it may run again.
    pub calls: Vec<CallId>,
    /// Other arguments, for one call: they are checked like those of a submission, and nothing is written if they do not fit.
    /// The call may also be in state `refused`. What tools see as idempotency key is then that of the new call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub arguments: Option<Box<RawValue>>,
}

impl RedriveRequest {
    /// The calls as they are.
    pub const fn unchanged(calls: Vec<CallId>) -> Self {
        Self { calls, arguments: None }
    }
}

/// The answer to a redrive, in its order.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RedriveReply {
    /// For each call: `accepted` with the new call, `existing` if it was redriven before, else why not.
    pub results: Vec<SubmitResult>,
}

/// Which ended calls run again. Every field narrows, and one is needed. Calls that were redriven before, and model turns, never
/// match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RedriveFilter {
    /// Of this tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// In this state: `failed`, `cancelled` or `unknown`. Without it, `failed` and `cancelled`: an `unknown` call may have done
    /// its work, so running it again has to be asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<CallState>,
    /// Ended with this error class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// Submitted then or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<DateTime<Utc>>,
    /// Submitted before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// Of this conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Submitted under this idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Of which this worker ran an attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Of tasks of this declared agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Not of these tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_tool: Vec<String>,
    /// Not ended with these error classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_class: Vec<ErrorClass>,
    /// `POINTER=VALUE`: with these values in their arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub argument: Vec<String>,
    /// `POINTER=VALUE`: with these values in their result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<String>,
    /// With this text in their arguments or their result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
}

impl RedriveFilter {
    /// True if no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The states that it matches.
    pub fn states(&self) -> Vec<CallState> {
        self.state.map_or_else(|| vec![CallState::Failed, CallState::Cancelled], |state| vec![state])
    }
}

/// Asks to run all calls again that match a filter. Sent as `redrives.create`; the answer is a [`RedriveView`]. A dispatcher
/// carries it out afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRedrive {
    /// A UUID that you make for it: the same request again is the same redrive.
    pub redrive: RedriveId,
    /// Which calls.
    pub filter: RedriveFilter,
    /// Count only, and change nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Calls that run again per second, at most: 1 to 10,000. Default 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// The number of a count that somebody confirmed, at least 1: fail, and run none again, if more calls match, and no more than this if
    /// calls fail meanwhile. Default: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
}

impl CreateRedrive {
    /// The rate unless one is given.
    pub const DEFAULT_RATE: u32 = 100;
    /// The highest rate.
    pub const MAX_RATE: u32 = 10_000;
}

/// Asks to stop a redrive. Sent as `redrives.cancel`; the answer is a [`RedriveView`]. Calls that run again already are not
/// stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRedrive {
    /// The redrive.
    pub redrive: RedriveId,
}

/// How far a redrive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RedriveState {
    /// The calls that match are counted.
    Counting,
    /// They run again, one after the other.
    Running,
    /// All of them do; or they are counted, in a dry run.
    Done,
    /// Somebody stopped it.
    Cancelled,
    /// It cannot go on.
    Failed,
    /// A state that this version does not know: a newer one wrote it. Only views show it; it is never written or read.
    #[serde(skip_deserializing)]
    Other,
}

named!(RedriveState, "a state of a redrive", other);

impl RedriveState {
    /// True if nothing happens any more.
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Counting | Self::Running | Self::Other)
    }
}

/// A redrive as users see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedriveView {
    /// Its id.
    pub redrive: RedriveId,
    /// How far it is.
    #[serde(deserialize_with = "crate::names::shown")]
    pub state: RedriveState,
    /// Which calls.
    pub filter: RedriveFilter,
    /// It only counts.
    pub dry_run: bool,
    /// Calls that run again per second, at most.
    pub rate: u32,
    /// It fails if more calls match, and runs no more than this again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u64>,
    /// Calls that would run again, as far as they are counted.
    pub matched: u64,
    /// Calls that run again as new calls.
    pub redriven: u64,
    /// Calls that somebody else redrove meanwhile.
    pub existing: u64,
    /// Calls that may not run again: the tenant may not use their tool any more, or they are being erased.
    pub refused: u64,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The user who asked for it.
    pub created_by: String,
    /// When.
    pub created_at: DateTime<Utc>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
}
