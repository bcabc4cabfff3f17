//! Waiting: for work until shutdown, and for servers that are away.

use std::time::{Duration, Instant};

use tokio::{sync::Notify, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::error::DispatcherError;

/// Between two tries to start.
const PAUSE: Duration = Duration::from_millis(500);

/// Returns the result of some work; `None` if the shutdown came first. Only for work that may be dropped half-way.
pub(crate) async fn until<T>(shutdown: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = shutdown.cancelled() => None,
        done = work => Some(done),
    }
}

/// Between two looks for a step of what is carried out in steps, if there is none.
const IDLE: Duration = Duration::from_secs(1);
/// The same while there was one a moment ago, and for how long.
const BUSY: Duration = Duration::from_millis(50);
const BUSY_FOR: Duration = Duration::from_secs(15);

/// Carries out what is on record in steps until shutdown, one step after the other. A step says whether there was one; woken,
/// the next one begins at once.
pub(crate) async fn carry_out<F>(shutdown: &CancellationToken, woken: &Notify, step: impl Fn() -> F)
where
    F: Future<Output = bool>,
{
    let mut worked_at = None;
    while !shutdown.is_cancelled() {
        if step().await {
            worked_at = Some(Instant::now());
            continue;
        }
        let is_busy = worked_at.is_some_and(|at: Instant| at.elapsed() < BUSY_FOR);
        let pause = async {
            tokio::select! {
                () = sleep(if is_busy { BUSY } else { IDLE }) => {}
                () = woken.notified() => {}
            }
        };
        if until(shutdown, pause).await.is_none() {
            return;
        }
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
                sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}
