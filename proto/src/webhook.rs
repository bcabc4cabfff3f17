//! Webhooks: subscriptions to the ends of calls and tasks, and their deliveries, which are calls of a built-in tool.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use strum::{VariantArray, VariantNames};
use uuid::Uuid;

use crate::{CallId, RetryBudget, RetryPolicy, limits, names::named, tool::check_name};

/// The built-in tool whose calls are deliveries. Nobody else may submit calls of it, and it is no tool for agents.
pub const TOOL: &str = "redial_webhook";
/// The pool of that tool.
pub const POOL: &str = "webhooks";
/// The type of the event that a test sends.
pub const PING: &str = "webhook.ping";
/// How long one try of a delivery may take, in ms.
pub const TIMEOUT_MS: u64 = 15_000;
/// After a rotation the earlier secret still signs for so long, in seconds.
pub const OVERLAP_SECONDS: i64 = 24 * 3600;
/// Webhooks that a tenant may have.
pub const MAX_WEBHOOKS: u32 = 100;
/// Names of tools, or of agents, that a webhook may be limited to.
pub const MAX_NAMES: usize = 100;

/// Tries of a delivery are spread over a day: soon at first, then every half hour or so.
pub const RETRY: RetryPolicy = RetryPolicy {
    initial_ms: 5_000,
    factor: 2.0,
    cap_ms: 30 * 60 * 1000,
    max_attempts: 200,
    deadline_ms: 24 * 3600 * 1000,
};

/// Each receiver is a service of its own, so that one of them is down says little about the others.
pub const RETRY_BUDGET: RetryBudget = RetryBudget { burst: 10_000.0, per_success: 1.0, per_second: 100.0 };

/// What a webhook may subscribe to.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
    VariantNames,
)]
pub enum WebhookEvent {
    /// Every end of a call.
    #[serde(rename = "call.*")]
    #[strum(serialize = "call.*")]
    AnyCall,
    /// A call succeeded.
    #[serde(rename = "call.succeeded")]
    #[strum(serialize = "call.succeeded")]
    CallSucceeded,
    /// A call failed.
    #[serde(rename = "call.failed")]
    #[strum(serialize = "call.failed")]
    CallFailed,
    /// It is not known whether a call of an `unsafe` tool did its work.
    #[serde(rename = "call.unknown")]
    #[strum(serialize = "call.unknown")]
    CallUnknown,
    /// A call was cancelled.
    #[serde(rename = "call.cancelled")]
    #[strum(serialize = "call.cancelled")]
    CallCancelled,
    /// A call was refused: it never ran.
    #[serde(rename = "call.refused")]
    #[strum(serialize = "call.refused")]
    CallRefused,
    /// Every end of a task.
    #[serde(rename = "task.*")]
    #[strum(serialize = "task.*")]
    AnyTask,
    /// A task was answered.
    #[serde(rename = "task.succeeded")]
    #[strum(serialize = "task.succeeded")]
    TaskSucceeded,
    /// A task failed.
    #[serde(rename = "task.failed")]
    #[strum(serialize = "task.failed")]
    TaskFailed,
    /// A task was cancelled.
    #[serde(rename = "task.cancelled")]
    #[strum(serialize = "task.cancelled")]
    TaskCancelled,
}

named!(WebhookEvent, "an event of webhooks");

/// Whether events are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WebhookState {
    /// Events are delivered.
    Active,
    /// Nothing is delivered, and what happens meanwhile never will be.
    Disabled,
    /// A state that this version does not know: a newer one wrote it. Only views show it; it is never written or read.
    #[serde(skip_deserializing)]
    Other,
}

named!(WebhookState, "a state of webhooks", other);

/// Why a webhook is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DisabledReason {
    /// A user asked for it.
    User,
    /// The receiver answered 410 Gone.
    Gone,
    /// More events waited for it than are kept.
    Backlog,
}

named!(DisabledReason, "a reason why a webhook is disabled");

/// Creates a webhook: events from now on are delivered. Sent as `webhooks.create`; the same request again gets the same
/// answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateWebhook {
    /// Its id, a random UUID that the client makes.
    pub webhook: Uuid,
    /// Where events are posted: `https://host/path`. It is on record, so it should contain no secret.
    pub url: String,
    /// Which events; at least one.
    pub events: Vec<WebhookEvent>,
    /// Only events of calls of these tools; of all tools if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Only events of tasks of these agents; of all agents if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
}

/// The answer to [`CreateWebhook`] and [`RotateWebhook`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookSecret {
    /// The webhook.
    pub webhook: WebhookView,
    /// The secret of its current version, `whsec_…`. It is not on record: keep it where the receiver verifies signatures.
    pub secret: String,
}

/// Changes a webhook; what is absent stays. Sent as `webhooks.update`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateWebhook {
    /// The webhook.
    pub webhook: Uuid,
    /// See [`CreateWebhook::url`]. Deliveries that are under way keep theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// See [`CreateWebhook::events`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<WebhookEvent>>,
    /// See [`CreateWebhook::tools`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// See [`CreateWebhook::agents`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// `disabled`: what waits is dropped, and what is under way is cancelled. `active`: events from now on are delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<WebhookState>,
}

/// Deletes a webhook: what waits is dropped, and what is under way is cancelled. Sent as `webhooks.delete`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteWebhook {
    /// The webhook.
    pub webhook: Uuid,
}

/// The answer to [`DeleteWebhook`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeletedWebhook {
    /// Deliveries that were under way, and are cancelled within seconds.
    pub cancelled: u64,
}

/// Gives a webhook a new secret; for a day deliveries are signed with both. Sent as `webhooks.rotate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateWebhook {
    /// The webhook.
    pub webhook: Uuid,
    /// The version of the secret that is to be replaced, so that a request that is sent again rotates once.
    pub version: u32,
}

/// Sends a webhook the event `webhook.ping`. Sent as `webhooks.test`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestWebhook {
    /// The webhook.
    pub webhook: Uuid,
}

/// The answer to [`TestWebhook`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestedWebhook {
    /// The delivery, a call like any other: it can be waited for, and its record says what the receiver answered.
    pub call: CallId,
}

/// A webhook as users see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookView {
    /// Its id.
    pub webhook: Uuid,
    /// Where events are posted.
    pub url: String,
    /// Which events.
    pub events: Vec<WebhookEvent>,
    /// Only events of calls of these tools; of all tools if there are none.
    pub tools: Vec<String>,
    /// Only events of tasks of these agents; of all agents if there are none.
    pub agents: Vec<String>,
    /// Whether events are delivered.
    #[serde(deserialize_with = "crate::names::shown")]
    pub state: WebhookState,
    /// Why it is disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<DisabledReason>,
    /// Version of its current secret, from 1.
    pub secret_version: u32,
    /// Until then deliveries are signed with the secret of the version before, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_until: Option<DateTime<Utc>>,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// The user who created it.
    pub created_by: String,
    /// When it was last changed.
    pub changed_at: DateTime<Utc>,
}

/// The arguments of a delivery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Delivery {
    /// The webhook.
    pub webhook: Uuid,
    /// Where it goes.
    pub url: String,
    /// The header `webhook-id`: one for each event, the same for every try and redrive.
    pub event: String,
    /// Which key its secrets are derived from.
    pub key: String,
    /// The version of its secret when the event was raised.
    pub version: u32,
    /// Until then the version before signs, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_until: Option<DateTime<Utc>>,
    /// What is posted, byte for byte.
    pub body: Box<RawValue>,
}

impl Delivery {
    /// The versions that sign a try at this time. One that is not the first (`is_late`) may come after rotations, so the next
    /// two versions sign it as well.
    pub fn versions(&self, now: DateTime<Utc>, is_late: bool) -> Vec<u32> {
        let previous = self.previous_until.filter(|until| *until > now && self.version > 1).map(|_| self.version - 1);
        let next = if is_late { 2 } else { 0 };
        (0..=next).map(|n| self.version.saturating_add(n)).chain(previous).collect()
    }
}

/// The rule in the details of a delivery's failure that says: the receiver does not want any more, disable the webhook.
pub const GONE: &str = "gone";

/// Checks what a user asks of a webhook, besides its URL. The error says what is allowed.
pub fn check_subscription(events: &[WebhookEvent], tools: &[String], agents: &[String]) -> Result<(), String> {
    if events.is_empty() || events.len() > WebhookEvent::ALL.len() {
        let (found, all) = (events.len(), WebhookEvent::ALL.map(WebhookEvent::as_str));
        return Err(format!("events holds {found}; allowed: 1 to {} of {}", all.len(), all.join(", ")));
    }
    for (what, names) in [("tools", tools), ("agents", agents)] {
        if names.len() > MAX_NAMES {
            return Err(format!("{what} holds {} names; allowed: {MAX_NAMES}", names.len()));
        }
    }
    tools.iter().try_for_each(|tool| check_name("tool name", tool))?;
    let is_wrong =
        |name: &&String| name.is_empty() || name.len() > limits::MAX_KEY || name.chars().any(char::is_control);
    match agents.iter().find(is_wrong) {
        None => Ok(()),
        Some(name) => {
            let (name, max) = (limits::shorten(name, 60), limits::MAX_KEY);
            Err(format!("agents holds {name:?}; allowed: names of 1 to {max} bytes without control characters"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallState, TaskState};

    #[test]
    fn every_end_has_its_event() {
        let calls = CallState::ALL.into_iter().filter(|state| state.is_terminal()).map(|state| format!("call.{state}"));
        let tasks = TaskState::ALL.into_iter().filter(|state| state.is_terminal()).map(|state| format!("task.{state}"));
        for event in calls.chain(tasks) {
            assert!(event.parse::<WebhookEvent>().is_ok(), "{event}");
        }
    }

    #[test]
    fn the_earlier_version_signs_until_its_time_and_late_tries_for_later_ones() {
        let now = DateTime::<Utc>::UNIX_EPOCH;
        let hour = chrono::TimeDelta::hours(1);
        let delivery = |version, previous_until| Delivery {
            webhook: Uuid::nil(),
            url: String::new(),
            event: String::new(),
            key: String::new(),
            version,
            previous_until,
            body: RawValue::NULL.to_owned(),
        };
        assert_eq!(delivery(1, None).versions(now, false), [1]);
        assert_eq!(delivery(1, Some(now + hour)).versions(now, false), [1]);
        assert_eq!(delivery(3, Some(now + hour)).versions(now, false), [3, 2]);
        assert_eq!(delivery(3, Some(now - hour)).versions(now, false), [3]);
        assert_eq!(delivery(3, Some(now + hour)).versions(now, true), [3, 4, 5, 2]);
    }

    #[test]
    fn a_subscription_says_what_is_allowed() {
        assert_eq!(check_subscription(&[WebhookEvent::AnyCall], &["echo".to_owned()], &["a b".to_owned()]), Ok(()));
        let none = check_subscription(&[], &[], &[]).unwrap_err();
        assert!(none.starts_with("events holds 0; allowed: 1 to 10 of call.*, call.succeeded"), "{none}");
        assert!(check_subscription(&[WebhookEvent::AnyCall], &["a.b".to_owned()], &[]).is_err());
        assert!(check_subscription(&[WebhookEvent::AnyCall], &[], &["a\n".to_owned()]).is_err());
        assert!(check_subscription(&[WebhookEvent::AnyTask], &vec!["a".to_owned(); 101], &[]).is_err());
        assert_eq!("call.finished".parse::<WebhookEvent>().unwrap_err().split("allowed: ").count(), 2);
    }
}
