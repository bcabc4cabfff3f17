//! Finishes erasures that were begun and that nobody asks for any more: a user ended the command, or a dispatcher died.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use redial_store::{StoreError, Tombstone};
use redial_telemetry::set_aside;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::erase::{Outcome, erase};
use crate::{context::Context, wait::until};

/// Between two looks for such erasures.
const INTERVAL: Duration = Duration::from_secs(5);
/// Whoever asks for an erasure asks again within this time.
const IDLE: Duration = Duration::from_secs(15);
/// Erasures that one look takes.
const AT_ONCE: u32 = 8;
/// How long one of them is worked on before the next one has its turn.
const TURN: Duration = Duration::from_secs(10);

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    while until(&shutdown, sleep(INTERVAL)).await.is_some() {
        if let Err(error) = finish(&context, &shutdown).await {
            tracing::warn!(%error, "Failed to finish an erasure; trying again");
        }
    }
}

async fn finish(context: &Context, shutdown: &CancellationToken) -> Result<(), StoreError> {
    let idle_ms = u64::try_from(IDLE.as_millis()).unwrap_or(u64::MAX);
    for (erasure, tombstone) in context.store.take_idle_erasures(idle_ms, AT_ONCE).await? {
        if shutdown.is_cancelled() {
            return Ok(());
        }
        match tombstone {
            Ok(tombstone) => go_on(context, tombstone).await?,
            Err(why) => set_aside("erasures", 1, &erasure, &why),
        }
    }
    Ok(())
}

async fn go_on(context: &Context, tombstone: Tombstone) -> Result<(), StoreError> {
    let erasure = tombstone.id;
    tracing::info!(%erasure, "Found an erasure that was not finished; going on with it");
    // Boxed, because most of the time there is none.
    match Box::pin(erase(context, tombstone, Instant::now() + TURN)).await? {
        Outcome::Refused(open) => {
            let (tasks, calls) = (open.tasks, open.calls);
            tracing::warn!(%erasure, tasks, calls, "Gave up an erasure because of work that has not ended");
        }
        Outcome::Erased(_) | Outcome::Working(..) | Outcome::GivenUp => {}
    }
    Ok(())
}
