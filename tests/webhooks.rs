//! Webhooks on real servers: what a receiver gets, what is retried, and what never happens.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

#[path = "webhooks/fixture.rs"]
mod fixture;
#[path = "webhooks/following.rs"]
mod following;
#[path = "webhooks/keys.rs"]
mod keys;
#[path = "webhooks/managing.rs"]
mod managing;
#[path = "shared/python.rs"]
mod python;
#[path = "webhooks/receiving.rs"]
mod receiving;
#[path = "webhooks/sharing.rs"]
mod sharing;
#[path = "webhooks/standard.rs"]
mod standard;
#[path = "webhooks/tasks.rs"]
mod tasks;
