//! Redrives and webhooks; what they are is in `redial_proto`.

use redial_proto::{RedriveView, WebhookView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

list! {
    /// A part of the redrives.
    RedriveList {
        /// Newest first.
        redrives: RedriveView
    }
}

/// The webhooks of a tenant, of which there are few.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct WebhookList {
    /// In the order of their ids.
    pub webhooks: Vec<WebhookView>,
}
