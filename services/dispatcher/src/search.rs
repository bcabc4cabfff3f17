//! Searches for calls in the backlog that the feeder does not know of: those of other tenants, and those that another dispatcher
//! put before others. A search runs beside the rounds, so that none waits for it, and for a tenth of the time at most: while
//! somebody holds an old snapshot, one over everything walks over all that was taken from the backlog since then.

use std::{sync::Arc, time::Duration};

use redial_store::{Gap, StoreError};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::{context::Context, feeder::Search, wait::until};

/// Between two searches: how soon calls start that another dispatcher put into the backlog.
const INTERVAL: Duration = Duration::from_millis(500);
/// Between two searches over everything.
const WHOLE: Duration = Duration::from_secs(15);
/// A search is not repeated for so many times as long as it took.
const PAUSE: u32 = 9;
/// The parts of the backlog that one statement looks at.
pub(crate) const AT_ONCE: usize = 2_000;

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let mut whole_at = Instant::now();
    loop {
        let is_whole = Instant::now() >= whole_at;
        if is_whole {
            context.feeder.search_all();
        }
        let began = Instant::now();
        if let Err(error) = search(&context).await {
            tracing::warn!(%error, "Failed to search the backlog; trying again");
        }
        let mut pause = (began.elapsed() * PAUSE).max(INTERVAL);
        if is_whole {
            whole_at = Instant::now() + pause.max(WHOLE);
            pause = INTERVAL;
        }
        if until(&shutdown, sleep(pause)).await.is_none() {
            return;
        }
    }
}

async fn search(context: &Context) -> Result<(), StoreError> {
    let now = context.store.now().await?;
    let wanted = context.feeder.search(std::time::Instant::now());
    let done = search_for(context, &wanted).await;
    context.feeder.searched(&wanted, done.is_ok().then_some(now));
    done
}

async fn search_for(context: &Context, wanted: &Search) -> Result<(), StoreError> {
    let mut done = Ok(());
    let mut left: Vec<&[Gap]> = wanted.gaps.chunks(AT_ONCE).collect();
    while let Some(gaps) = left.pop() {
        match context.store.waiting_tenants(gaps).await {
            Ok(found) => context.feeder.found(found),
            // One that takes too long keeps no others from being found.
            Err(error) if error.is_timeout() && gaps.len() > 1 => left.extend(gaps.chunks(gaps.len().div_ceil(2))),
            Err(error) => done = Err(error),
        }
    }
    for parts in wanted.parts.chunks(AT_ONCE) {
        match context.store.waiting(parts).await {
            Ok(found) => context.feeder.found(found),
            Err(error) => done = Err(error),
        }
    }
    done
}
