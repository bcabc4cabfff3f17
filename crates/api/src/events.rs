//! What ends in a tenant.

use chrono::{DateTime, Utc};
use redial_proto::{CallId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What ended.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Missed {
    /// Calls and tasks, in the order of their ends.
    pub items: Vec<EndedItem>,
    /// Where the next page is; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A call or a task that ended.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EndedItem {
    /// The call; absent for a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The task, or the one that asked for the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The tool of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The agent of a task, unless it was given with the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How it ended.
    pub state: String,
    /// The error class of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Why a task ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Attempts of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// When it ended, by the database's clock.
    pub at: DateTime<Utc>,
}
