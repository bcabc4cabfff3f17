//! Waits for a condition, never for a time.

use std::time::Duration;

use tokio::time::Instant;

/// How long a condition may take.
const PATIENCE: Duration = Duration::from_mins(2);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(10);
/// What a check and its pause count at most: a machine that stands still for seconds, or is slow, costs no patience.
const CHECK: Duration = Duration::from_millis(50);
/// So many times the patience may pass by the clock, if checks take long for another reason.
const LONGEST: u32 = 4;

/// Repeats a check until it has an answer. Panics with `what` after 2 min, of which each check counts 50 ms at most.
pub async fn until<T>(what: &str, check: impl AsyncFnMut() -> Option<T>) -> T {
    until_within(PATIENCE, what, check).await
}

/// Repeats a check with a limit of its own.
pub async fn until_within<T>(patience: Duration, what: &str, check: impl AsyncFnMut() -> Option<T>) -> T {
    let Some(answer) = within(patience, check).await else { panic!("no answer within {patience:?} of checks: {what}") };
    answer
}

/// Repeats a check without the panic: `None` if there was no answer in time.
pub async fn within<T>(patience: Duration, mut check: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let checks = async {
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
    };
    tokio::time::timeout(LONGEST * patience, checks).await.ok().flatten()
}
