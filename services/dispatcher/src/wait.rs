//! Waiting: for work until shutdown, and for servers that are away.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::DispatcherError;

/// Between two tries to start.
const PAUSE: Duration = Duration::from_millis(500);

/// The result of some work, or `None` if the shutdown came first. Only for work that may be dropped half-way.
pub(crate) async fn until<T>(shutdown: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = shutdown.cancelled() => None,
        done = work => Some(done),
    }
}

/// Repeats a part of the start until it succeeds: the servers may go away at any time, also now.
pub(crate) async fn retry_transient<T, F>(work: impl Fn() -> F) -> Result<T, DispatcherError>
where
    F: Future<Output = Result<T, DispatcherError>>,
{
    loop {
        match work().await {
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "Failed to start the dispatcher; trying again");
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}
