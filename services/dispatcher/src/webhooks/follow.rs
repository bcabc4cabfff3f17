//! Takes the ends of calls and tasks from their queue, writes the events that webhooks want, and their deliveries.
//!
//! The statement that ends something puts it into the queue, if its tenant has an active webhook; the transaction that takes it writes its
//! events. So each end is told once, and none is missed.

use std::{sync::Arc, time::Duration};

use redial_proto::DisabledReason;
use redial_store::{Gone, Pass, StoreError};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::deliver::deliver;
use crate::{context::Context, effects, transitions, wait::until};

/// Between two passes.
const INTERVAL: Duration = Duration::from_secs(1);
/// A dispatcher that leads and dies is followed by another one after so many ms.
const LEASE_MS: u64 = 5_000;
/// Ends of one step.
const ENDS: u32 = 1_000;
/// Steps of one pass, when there is much to cancel.
const STEPS: u32 = 20;
/// Passes between two looks at what is left over.
const TIDIED: u32 = 60;
/// Passes between two looks at what is under way to webhooks that are not active any more.
const CANCELLED: u32 = 3;
/// Deliveries that are cancelled at once.
const CANCELS: u32 = 256;
/// Following takes no longer in one pass, by and large: whoever leads has to come back before its lease is over.
const FOLLOWING: Duration = Duration::from_secs(2);
/// More events than these do not wait for a webhook: it is disabled.
const MOST_WAITING: u32 = 100_000;

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let mut follower = Follower { context, shutdown: shutdown.clone(), me: Uuid::new_v4(), passes: 0 };
    loop {
        let goes_on = match follower.pass().await {
            Ok(goes_on) => goes_on,
            Err(error) => {
                if error.is_transient() {
                    tracing::debug!(%error, "Failed to follow ends for webhooks; the next pass goes on there");
                } else {
                    tracing::warn!(%error, "Failed to follow ends for webhooks; the next pass goes on there");
                }
                false
            }
        };
        let pause = if goes_on { Duration::ZERO } else { INTERVAL };
        if until(&shutdown, sleep(pause)).await.is_none() {
            return;
        }
    }
}

struct Follower {
    context: Arc<Context>,
    shutdown: CancellationToken,
    me: Uuid,
    passes: u32,
}

impl Follower {
    /// Makes a pass; returns whether there is more to follow or to deliver.
    async fn pass(&mut self) -> Result<bool, StoreError> {
        let store = &self.context.store;
        if !store.has_webhook_work().await? {
            return Ok(false);
        }
        let Some(is_any_active) = store.lead_webhooks(self.me, LEASE_MS).await? else { return Ok(false) };
        self.passes = self.passes.wrapping_add(1);
        let more = self.follow().await?;
        if self.passes.is_multiple_of(TIDIED) || !is_any_active {
            self.tidy().await?;
        }
        if self.passes % CANCELLED == 1 || !is_any_active {
            self.cancel().await?;
        }
        Ok(more | (is_any_active && deliver(&self.context, &self.shutdown).await?))
    }

    /// Takes the ends in the queue, a step at a time; returns whether there may be more.
    async fn follow(&self) -> Result<bool, StoreError> {
        let (began, mut pass) = (Instant::now(), Pass::default());
        while began.elapsed() < FOLLOWING && !self.shutdown.is_cancelled() {
            let followed = self.context.store.follow_webhooks(&mut pass, ENDS).await?;
            for gone in &followed.disabled {
                disabled(gone, DisabledReason::Gone);
            }
            if followed.ends < ENDS as usize {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Cancels what is under way to webhooks that were deleted or disabled, by whomever. The tables alone say what that is, so a
    /// dispatcher that dies leaves the rest to the next one.
    async fn cancel(&self) -> Result<(), StoreError> {
        for _ in 0..STEPS {
            let abandoned = self.context.store.abandoned_deliveries(CANCELS).await?;
            if abandoned.is_empty() {
                break;
            }
            let (cancelled, effects) = transitions::cancel_all(&self.context, &abandoned).await?;
            effects::carry_out(&self.context, effects).await;
            tracing::info!(cancelled, "Cancelled deliveries to webhooks that were deleted or disabled");
            if cancelled == 0 || self.shutdown.is_cancelled() {
                break;
            }
        }
        Ok(())
    }

    /// Deletes what is over, and disables webhooks for which too much waits.
    async fn tidy(&self) -> Result<(), StoreError> {
        let store = &self.context.store;
        store.settle_events().await?;
        store.delete_orphaned_events().await?;
        for overfull in store.overfull_webhooks(MOST_WAITING).await? {
            if store.disable_webhook(&overfull, DisabledReason::Backlog).await? {
                disabled(&overfull, DisabledReason::Backlog);
            }
        }
        Ok(())
    }
}

fn disabled(gone: &Gone, reason: DisabledReason) {
    let (tenant, webhook) = (&gone.tenant, gone.webhook);
    tracing::warn!(tenant, %webhook, %reason, "Disabled a webhook");
}
