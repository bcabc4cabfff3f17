//! Waits for a condition, never for a time.

use std::time::Duration;

use tokio::time::Instant;

/// How long a condition may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(10);

/// Repeats a check until it has an answer. Panics with `what` after 30 s.
pub async fn until<T>(what: &str, check: impl AsyncFnMut() -> Option<T>) -> T {
    until_within(PATIENCE, what, check).await
}

/// The same with a limit of its own.
pub async fn until_within<T>(patience: Duration, what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(answer) = check().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "timed out after {patience:?}: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
