//! Transactions of others: one holds rows of calls locked, one stays open. All else goes on.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use chrono::Utc;
use redial_proto::ToolEffect;
use redial_testkit::OpenTransaction;
use serde_json::json;

use super::{Injector, Outcome, Target, between, reached};
use crate::{fixture::LEASE, schedule::Step};

/// Calls whose rows are locked, which end one after another: more than the batches of reports that dispatchers store at once.
const LOCKED: u64 = 24;
/// Between two of their ends, in ms.
const APART_MS: u64 = 100;
/// Calls end in this time beside a transaction that was opened before them.
const ENDS: Duration = Duration::from_secs(2);

impl Injector {
    /// Locks the rows of calls that run, for longer than a lease; their reports arrive meanwhile. They are `unsafe`, so that the ends
    /// of their leases stop nothing.
    pub(super) async fn lock_calls(&mut self, step: &Step) -> anyhow::Result<Outcome> {
        let pulse = self.pulse();
        let lease_ms = u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX);
        let orders = |n| json!({"n": n, "before_ms": lease_ms + n * APART_MS});
        let calls = self.submit(ToolEffect::Unsafe.as_str(), LOCKED, orders).await;
        reached(async || self.progress(&calls).await.waiting == 0).await;
        let locks = opened(async || self.fixture.observer.lock(&calls).await).await?;
        tokio::time::sleep(between(4 * LEASE, 5 * LEASE, step)).await;
        drop(locks);
        let ended = self.end(&calls).await;
        let (_, pause) = self.longest_pause(pulse).await;
        Ok(Outcome::recovered(ended).with((Target::RowsLocked, pause)))
    }

    /// Holds a number of a transaction and a snapshot for half a minute. What ends meanwhile is counted all the same.
    pub(super) async fn long_transaction(&mut self) -> anyhow::Result<Outcome> {
        let (pulse, began) = (self.pulse(), Instant::now());
        let transaction = opened(async || self.fixture.observer.write_for_long().await).await?;
        tokio::time::sleep(ENDS).await;
        let ended = Utc::now();
        let counted = reached(async || self.fixture.observer.counted_until(ended).await == Some(true)).await;
        tokio::time::sleep((self.minute / 2).saturating_sub(began.elapsed())).await;
        drop(transaction);
        Ok(Outcome::recovered(counted).counts_for(Target::CountedBeside).with(self.longest_pause(pulse).await))
    }
}

/// Opens a transaction, once the database answers.
async fn opened(open: impl AsyncFn() -> Option<OpenTransaction>) -> anyhow::Result<OpenTransaction> {
    let mut transaction = None;
    reached(async || {
        transaction = open().await;
        transaction.is_some()
    })
    .await;
    transaction.context("the database did not answer")
}
