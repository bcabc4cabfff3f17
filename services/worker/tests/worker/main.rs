//! Tests the worker against the wire contract: a real nats-server, and a scripted dispatcher.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail anywhere")]

mod claims;
mod dispatcher;
mod drain;
mod leases;
mod models;
mod pieces;
mod pools;
mod reports;
mod tools;

use std::time::Duration;

/// Fails the test if the future takes longer.
async fn within<T>(seconds: u64, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(seconds), future).await.expect("took too long")
}
