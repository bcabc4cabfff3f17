//! Waits for a condition, never for a time.

use std::time::Duration;

use tokio::time::Instant;

/// How long a condition may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(10);
/// What a check and its pause count at most. On a machine that stands still for seconds, or is slow, they take longer.
const CHECK: Duration = Duration::from_millis(50);

/// Repeats a check until it has an answer. Panics with `what` after 30 s.
pub async fn until<T>(what: &str, check: impl AsyncFnMut() -> Option<T>) -> T {
    until_within(PATIENCE, what, check).await
}

/// The same with a limit of its own.
pub async fn until_within<T>(patience: Duration, what: &str, check: impl AsyncFnMut() -> Option<T>) -> T {
    let Some(answer) = within(patience, check).await else { panic!("timed out after {patience:?}: {what}") };
    answer
}

/// The same without the panic: `None` if there was no answer in time.
pub(crate) async fn within<T>(patience: Duration, mut check: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let mut waited = Duration::ZERO;
    while waited < patience {
        let began = Instant::now();
        if let Some(answer) = check().await {
            return Some(answer);
        }
        tokio::time::sleep(PAUSE).await;
        waited += began.elapsed().min(CHECK);
    }
    None
}
