//! Exports how many calls wait in each pool, and for how long: what workers are scaled on. Nothing is read unless metrics are
//! exported.
//!
//! Every dispatcher exports the same, because none is special: whoever reads it takes the largest value, not the sum.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use redial_api::QueueItem;
use redial_proto::Tenant;
use redial_store::{StoreError, Time};
use redial_telemetry::metrics;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{context::Context, wait::until};

/// Between two looks: open calls are counted, which takes some tens of milliseconds.
const INTERVAL: Duration = Duration::from_secs(5);

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    if !metrics().are_exported() {
        return;
    }
    let mut exported = BTreeSet::new();
    loop {
        match look(&context).await {
            Ok(pools) => export(pools, &mut exported),
            // The last values stay.
            Err(error) => tracing::warn!(%error, "Failed to read how many calls wait; trying again"),
        }
        if until(&shutdown, sleep(INTERVAL)).await.is_none() {
            return;
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Waiting {
    calls: u64,
    oldest: Duration,
}

async fn look(context: &Context) -> Result<BTreeMap<String, Waiting>, StoreError> {
    let queues = context.store.of(&Tenant::default()).queues(true).await?;
    Ok(by_pool(queues.queues, context.store.now().await?))
}

/// Sums what waits by pool; one in which calls are open and none waits has zeros.
fn by_pool(tools: Vec<QueueItem>, now: Time) -> BTreeMap<String, Waiting> {
    let mut pools: BTreeMap<String, Waiting> = BTreeMap::new();
    for tool in tools {
        let age = tool.oldest_ready_at.map_or(Duration::ZERO, |oldest| (now - oldest).to_std().unwrap_or_default());
        let pool = pools.entry(tool.pool).or_default();
        pool.calls += tool.ready;
        pool.oldest = pool.oldest.max(age);
    }
    pools
}

/// Exports pools. One that was exported before and has no open calls any more gets zeros, or its last value would stay.
fn export(mut pools: BTreeMap<String, Waiting>, exported: &mut BTreeSet<String>) {
    for pool in exported.iter() {
        pools.entry(pool.clone()).or_default();
    }
    for (pool, waiting) in pools {
        metrics().queue_waits(&pool, waiting.calls, waiting.oldest);
        exported.insert(pool);
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn the_tools_of_a_pool_are_added_up() {
        let now = Time::from(std::time::SystemTime::now());
        let line = |tool: &str, pool: &str, ready, oldest: Option<i64>| QueueItem {
            tool: tool.to_owned(),
            pool: pool.to_owned(),
            ready,
            running: 1,
            oldest_ready_at: oldest.map(|seconds| now - TimeDelta::seconds(seconds)),
            ..QueueItem::default()
        };
        let lines =
            vec![line("a", "default", 3, Some(9)), line("b", "default", 4, Some(2)), line("c", "commands", 0, None)];
        let waiting = |calls, seconds| Waiting { calls, oldest: Duration::from_secs(seconds) };
        let wanted = [("commands".to_owned(), waiting(0, 0)), ("default".to_owned(), waiting(7, 9))];
        assert_eq!(by_pool(lines, now), BTreeMap::from(wanted));
        // The database's clock was set back.
        assert_eq!(by_pool(vec![line("a", "default", 1, Some(-5))], now)["default"], waiting(1, 0));
    }
}
