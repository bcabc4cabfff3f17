//! Waiting for something that another process does.

use std::time::Duration;

use anyhow::Context;

/// The pause between two checks.
const INTERVAL: Duration = Duration::from_millis(40);

/// Checks repeatedly until `check` returns a value. Does not time out: the scenario around it does.
pub(crate) async fn until<T>(what: &str, check: impl AsyncFn() -> anyhow::Result<Option<T>>) -> anyhow::Result<T> {
    loop {
        if let Some(found) = check().await.with_context(|| format!("waiting until {what}"))? {
            return Ok(found);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
