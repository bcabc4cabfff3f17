//! What users did.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

list! {
    /// A part of the actions.
    ActionList {
        /// Newest first.
        actions: ActionItem
    }
}

/// What a user asked for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ActionItem {
    /// Its number.
    pub id: i64,
    /// When it was asked for.
    pub at: DateTime<Utc>,
    /// Within which tenant; only for whoever reads those of all tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub tenant: Option<String>,
    /// Who asked.
    pub user: String,
    /// In which role.
    pub role: String,
    /// The way in, as the request said.
    pub door: String,
    /// The id of the token that asked; `null` if none did.
    pub token: Option<String>,
    /// What was asked for.
    pub verb: String,
    /// What it was about, the first hundred.
    pub targets: Vec<String>,
    /// How many there were in all.
    pub target_count: i32,
    /// `done`, or the code of the error; `null` if that is not known.
    pub result: Option<String>,
    /// How many were changed; `null` if that is not known.
    pub changed: Option<i32>,
}
