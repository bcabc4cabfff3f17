//! Prunes calls that ended long ago.

use std::{sync::Arc, time::Duration};

use redial_store::StoreError;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{context::Context, wait::until};

/// Between two passes.
const INTERVAL: Duration = Duration::from_mins(1);
/// Calls that are deleted in one transaction.
const BATCH: u32 = 1_000;

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let Some(age) = context.config.retention else { return };
    loop {
        match pass(&context, &shutdown, age).await {
            Ok(0) => {}
            Ok(calls) => tracing::info!(calls, "Deleted old calls"),
            Err(error) => tracing::warn!(%error, "Failed to delete old calls"),
        }
        if until(&shutdown, sleep(INTERVAL)).await.is_none() {
            return;
        }
    }
}

async fn pass(context: &Context, shutdown: &CancellationToken, age: Duration) -> Result<u64, StoreError> {
    let cutoff = context.store.now().await? - age;
    let mut deleted = 0;
    while !shutdown.is_cancelled() {
        let calls = context.store.prune(cutoff, BATCH).await?;
        deleted += calls;
        if calls < u64::from(BATCH) {
            break;
        }
    }
    Ok(deleted)
}
