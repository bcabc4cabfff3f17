//! Whether a dispatcher can do its work.

use chrono::{DateTime, SecondsFormat, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a dispatcher answers to `dispatchers.health`, once its database takes writes; an [`crate::ApiError`] if that does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DispatcherHealth {
    /// Since when NATS has taken none of its jobs, by the dispatcher's clock; absent if it takes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs_fail_since: Option<DateTime<Utc>>,
}

impl DispatcherHealth {
    /// What is wrong, if something is.
    pub fn trouble(&self) -> Option<String> {
        let since = self.jobs_fail_since?.to_rfc3339_opts(SecondsFormat::Secs, true);
        Some(format!(
            "jobs cannot be published since {since}: accepted calls wait; the log of the dispatchers and of NATS says why"
        ))
    }
}
