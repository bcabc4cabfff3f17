//! Adds ended calls to the statistics, in steps.
//!
//! After an outage or an upgrade it catches up in the same way, at half of one connection's time. Any number of dispatchers
//! may do so: each step is locked, and one that dies half-way leaves nothing behind.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use redial_store::{Pass, Store, StoreError, stats::RolledUp};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{context::Context, wait::until};

/// Between two passes.
const INTERVAL: Duration = Duration::from_secs(15);
/// Calls of one step.
const CALLS: u32 = 5_000;

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    loop {
        if let Err(error) = pass(&context.store, &shutdown).await {
            tracing::warn!(%error, "Failed to roll up statistics; the next pass goes on there");
        }
        if until(&shutdown, sleep(INTERVAL)).await.is_none() {
            return;
        }
    }
}

/// Adds everything that is in the queue.
async fn pass(store: &Store, shutdown: &CancellationToken) -> Result<(), StoreError> {
    let (mut pass, mut limit, mut added) = (Pass::default(), CALLS, 0);
    while !shutdown.is_cancelled() {
        let began = Instant::now();
        match store.roll_up(&mut pass, limit).await {
            Ok(RolledUp::Added { calls }) => {
                added += calls;
                limit = (limit + limit / 8 + 1).min(CALLS);
            }
            Ok(RolledUp::Busy | RolledUp::Done) => break,
            // Not for what those calls hold: they count once it is over.
            Err(error) if error.is_outage() || error.is_lock_timeout() => return Err(error),
            Err(_) if limit > 1 => limit /= 2,
            Err(error) => {
                if let Some(call) = store.leave_out_of_stats(&pass).await? {
                    tracing::warn!(%error, %call, "Left a call out of the statistics: it cannot be counted");
                }
            }
        }
        if until(shutdown, sleep(began.elapsed())).await.is_none() {
            break;
        }
    }
    if added > 0 {
        tracing::debug!(calls = added, "Added calls to the statistics");
    }
    Ok(())
}
