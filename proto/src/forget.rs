//! Messages about erasing a conversation or a tenant.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Asks to erase a conversation, or everything of a tenant. Sent as `conversations.forget` or `tenants.forget`.
///
/// A dispatcher waits for its end for a few seconds and answers how far it is: send the same request again until the answer
/// says `done`. Once it has begun, it is finished in any case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// The conversation, for `conversations.forget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Count only, and change nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// A UUID that you make for this erasure, so that a request that is sent again continues it. Not needed to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erasure: Option<Uuid>,
    /// Cancel tasks and calls that have not ended, and wait for their end. Otherwise they are a reason to erase nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
}

/// The answer to [`Forget`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForgetReply {
    /// It was counted, or is erased.
    pub done: bool,
    /// What would be erased, up to 100,000 of each; or all that is erased so far.
    pub counts: ForgetCounts,
    /// What has not ended yet: of a dry run in `counts`; else what the erasure waits for now.
    #[serde(default)]
    pub open: OpenWork,
    /// There is more than a dry run counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// When the last of it was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased_at: Option<DateTime<Utc>>,
}

/// Numbers of what is erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForgetCounts {
    /// Tasks.
    pub tasks: u64,
    /// Messages of conversations.
    pub messages: u64,
    /// Recorded steps of tasks.
    pub steps: u64,
    /// Calls, model turns included.
    pub calls: u64,
    /// Model turns: requests to models and their replies.
    pub model_turns: u64,
    /// Attempts, with their results and errors.
    pub attempts: u64,
    /// Reports that came too late to count.
    pub late_reports: u64,
    /// Messages that could not be processed.
    pub dead_letters: u64,
    /// Idempotency keys; they are free again.
    pub keys: u64,
    /// Rows of statistics, if a tenant is erased.
    #[serde(default)]
    pub statistics: u64,
    /// Tokens for HTTP, if a tenant is erased.
    #[serde(default)]
    pub tokens: u64,
}

impl ForgetCounts {
    /// Adds other counts.
    pub const fn add(&mut self, other: &Self) {
        self.tasks += other.tasks;
        self.messages += other.messages;
        self.steps += other.steps;
        self.calls += other.calls;
        self.model_turns += other.model_turns;
        self.attempts += other.attempts;
        self.late_reports += other.late_reports;
        self.dead_letters += other.dead_letters;
        self.keys += other.keys;
        self.statistics += other.statistics;
        self.tokens += other.tokens;
    }
}

/// Work that has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenWork {
    /// Tasks that wait or run.
    pub tasks: u64,
    /// Calls that are ready, running or wait for a retry.
    pub calls: u64,
}
