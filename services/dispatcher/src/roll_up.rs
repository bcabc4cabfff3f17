//! Adds ended calls to the statistics, in steps, oldest first. No step touches what accepts, claims or ends calls.
//!
//! After an outage or an upgrade it catches up in the same way, at half of one connection's time. Any number of dispatchers
//! may do so: each step is locked, and one that dies half-way leaves nothing behind.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use redial_store::{Store, StoreError, Time, stats::RolledUp};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{bounds::Bounds, context::Context, wait::until};

/// Between two passes.
const INTERVAL: Duration = Duration::from_secs(15);
/// Between the first two, which only begin to know which transactions are over.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);
/// Calls of one step.
const CALLS: u32 = 5_000;

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let mut bounds = Bounds::new("the statistics");
    loop {
        let is_first = bounds.is_new();
        match next(&context.store, &mut bounds).await {
            Ok(Some(bound)) => add(&context.store, &shutdown, bound).await,
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "Failed to roll up statistics"),
        }
        let pause = if is_first { FIRST_INTERVAL } else { INTERVAL };
        if until(&shutdown, sleep(pause)).await.is_none() {
            return;
        }
    }
}

/// The next bound, if there is one.
async fn next(store: &Store, bounds: &mut Bounds) -> Result<Option<Time>, StoreError> {
    if let Some(from) = store.set_back_stats().await? {
        tracing::warn!(%from, "The database's clock was set back; counting the statistics again from there");
    }
    Ok(bounds.next(store.fence().await?))
}

/// Adds everything that ended before `bound`.
async fn add(store: &Store, shutdown: &CancellationToken, bound: Time) {
    let (mut limit, mut added) = (CALLS, 0);
    while !shutdown.is_cancelled() {
        let began = Instant::now();
        match store.roll_up(bound, limit).await {
            Ok(RolledUp::Added { calls }) => {
                added += calls;
                limit = (limit + limit / 8 + 1).min(CALLS);
            }
            Ok(RolledUp::Busy | RolledUp::Done) => break,
            Err(error) if error.is_timeout() && limit > 1 => limit /= 2,
            Err(error) if error.is_timeout() => {
                if let Err(error) = leave_out(store, bound, &error).await {
                    return tracing::warn!(%error, "Failed to roll up statistics");
                }
            }
            Err(error) => return tracing::warn!(%error, "Failed to roll up statistics; the next pass goes on there"),
        }
        if until(shutdown, sleep(began.elapsed())).await.is_none() {
            return;
        }
    }
    if added > 0 {
        tracing::debug!(calls = added, "Added calls to the statistics");
    }
}

async fn leave_out(store: &Store, bound: Time, why: &StoreError) -> Result<(), StoreError> {
    if let Some(ended_at) = store.leave_out_of_stats(bound).await? {
        tracing::warn!(error = %why, %ended_at, "Left calls out of the statistics: reading them takes too long");
    }
    Ok(())
}
