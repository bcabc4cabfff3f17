//! Webhooks: subscriptions, the events of ends, and their deliveries.
//!
//! `subscriptions.rs` is what users change, `follow.rs` takes what ended from the queue, `deliver.rs` writes deliveries.

mod deliver;
mod follow;
mod subscriptions;

pub use deliver::{DeliverOutcome, DeliveryLimits, PendingEvent, WebhookDelivery};
pub use follow::{Followed, Gone};
pub use subscriptions::{NewWebhook, Rotated, WebhookChange, WebhookCreated, WebhookOnRecord};
