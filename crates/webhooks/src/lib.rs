//! Webhooks: the secrets of subscriptions, the signatures of deliveries, and where deliveries may go. Pure: time is an argument.
//!
//! Signatures follow Standard Webhooks 1.0.0. No secret is stored: each is derived from one key and from what is on record of
//! its webhook.

mod address;
mod key;
mod signature;
mod target;

pub use address::{Allowed, AllowedError, is_public};
pub use key::{KeyError, WebhookKey};
pub use signature::{Signed, signed};
pub use target::{MAX_URL, Refused, check_target, check_url};
