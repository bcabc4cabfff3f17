//! Follows the ends of calls and tasks, writes the events that webhooks want, and their deliveries.
//!
//! Ends are found by their time, twice: a moment after they are visible, so that a delivery is not late; and behind a fence,
//! when no end of an earlier time can appear any more, so that none is missed. An event that is found twice is written once.
//! While there is no webhook, nothing is followed.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use redial_proto::DisabledReason;
use redial_store::{Gone, Lead, Span, StoreError, Time};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::deliver::deliver;
use crate::{bounds::Bounds, context::Context, effects, transitions, wait::until};

/// Between two passes.
const INTERVAL: Duration = Duration::from_secs(1);
/// A dispatcher that leads and dies is followed by another one after so many ms.
const LEASE_MS: u64 = 5_000;
/// How far back a look goes at what is visible by now: some passes.
const RECENT: TimeDelta = TimeDelta::seconds(5);
/// Ends of one step.
const ENDS: u32 = 1_000;
/// Steps of one pass, when there is much to catch up with or to cancel.
const STEPS: u32 = 20;
/// A fence takes a transaction number, so one is made in so many passes.
const FENCED: u32 = 3;
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
/// Events of ended deliveries that are deleted at once.
const ROWS: u32 = 5_000;
/// A clock that was set back: ends of so long ago are looked at again.
const SET_BACK: TimeDelta = TimeDelta::hours(1);

pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) {
    let mut follower = Follower {
        context,
        shutdown: shutdown.clone(),
        me: Uuid::new_v4(),
        bounds: Bounds::new("the events of webhooks"),
        bound: None,
        passes: 0,
    };
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
    bounds: Bounds,
    /// No end before this can appear any more.
    bound: Option<Time>,
    passes: u32,
}

impl Follower {
    /// Returns whether there is more to deliver.
    async fn pass(&mut self) -> Result<bool, StoreError> {
        let store = &self.context.store;
        if !store.has_webhook_work().await? {
            return Ok(false);
        }
        let Some(lead) = store.lead_webhooks(self.me, LEASE_MS).await? else { return Ok(false) };
        self.passes = self.passes.wrapping_add(1);
        if let Some(from) = self.start(lead).await?
            && !self.follow(from, lead.now).await?
        {
            tracing::debug!("Another dispatcher has followed the ends further; this one does no longer lead");
            return Ok(false);
        }
        if self.passes.is_multiple_of(TIDIED) || lead.first_since.is_none() {
            self.tidy(lead).await?;
        }
        if self.passes % CANCELLED == 1 || lead.first_since.is_none() {
            self.cancel().await?;
        }
        Ok(lead.first_since.is_some() && deliver(&self.context, &self.shutdown).await?)
    }

    /// Follows ends from here; `false` if another dispatcher has followed them further.
    async fn follow(&mut self, from: Time, now: Time) -> Result<bool, StoreError> {
        let Some(from) = self.follow_all(from).await? else { return Ok(false) };
        let store = &self.context.store;
        let recent = Span { from: from.max(now - RECENT), until: now + RECENT };
        let recent = store.slice_of_ends(recent, ENDS * STEPS).await?;
        self.disable_gone(recent).await?;
        store.notice_webhooks(recent, from).await
    }

    /// From where ends are followed; `None` while no webhook is active.
    async fn start(&mut self, lead: Lead) -> Result<Option<Time>, StoreError> {
        let store = &self.context.store;
        let Some(since) = lead.first_since else {
            if lead.followed_until.is_some() {
                // If it has moved, the next pass of whoever leads then does this.
                store.set_webhook_progress(lead.followed_until, None).await?;
            }
            return Ok(None);
        };
        let from = match lead.followed_until {
            None => since,
            Some(until) if until > lead.now + TimeDelta::seconds(1) => {
                tracing::warn!(%until, "The database's clock was set back; looking again at what ended within an hour");
                self.bound = None;
                lead.now - SET_BACK
            }
            Some(until) => return Ok(Some(until)),
        };
        let is_set = store.set_webhook_progress(lead.followed_until, Some(from)).await?;
        Ok(is_set.then_some(from))
    }

    /// Follows all ends before the bound, or as many as a pass takes; returns how far, or `None` if another dispatcher has
    /// followed them further.
    async fn follow_all(&mut self, mut from: Time) -> Result<Option<Time>, StoreError> {
        let store = &self.context.store;
        if self.passes % FENCED == 1 {
            let fence = store.fence().await?;
            self.bound = self.bounds.next(fence).or(self.bound);
        }
        let Some(bound) = self.bound.filter(|bound| *bound > from) else { return Ok(Some(from)) };
        let began = Instant::now();
        for _ in 0..STEPS {
            if from >= bound || began.elapsed() > FOLLOWING || self.shutdown.is_cancelled() {
                break;
            }
            // A slice at a time, so that no statement takes longer the more there is to catch up with.
            let slice = store.slice_of_ends(Span { from, until: bound }, ENDS).await?;
            // Before the progress moves: what dies in between is looked at again.
            self.disable_gone(slice).await?;
            if !store.follow_webhooks(slice).await? {
                return Ok(None);
            }
            from = slice.until;
        }
        Ok(Some(from))
    }

    async fn disable_gone(&self, span: Span) -> Result<(), StoreError> {
        for gone in self.context.store.gone_receivers(span).await? {
            self.disable(&gone, DisabledReason::Gone).await?;
        }
        Ok(())
    }

    async fn disable(&self, gone: &Gone, reason: DisabledReason) -> Result<(), StoreError> {
        if self.context.store.disable_webhook(gone, reason).await? {
            let (tenant, webhook) = (&gone.tenant, gone.webhook);
            tracing::warn!(tenant, %webhook, %reason, "Disabled a webhook");
        }
        Ok(())
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
    async fn tidy(&self, lead: Lead) -> Result<(), StoreError> {
        let store = &self.context.store;
        store.settle_events().await?;
        store.delete_orphaned_events().await?;
        let before = lead.followed_until.unwrap_or(lead.now);
        while store.delete_ended_events(before, ROWS).await? >= u64::from(ROWS) && !self.shutdown.is_cancelled() {}
        for overfull in store.overfull_webhooks(MOST_WAITING).await? {
            self.disable(&overfull, DisabledReason::Backlog).await?;
        }
        Ok(())
    }
}
