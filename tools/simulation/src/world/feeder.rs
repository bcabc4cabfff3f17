//! The feeder of a dispatcher: it publishes the jobs of calls that wait as far as windows and retry tokens allow.

use std::collections::HashMap;

use redial_engine::{
    Time,
    call::{JobState, Waiting},
    health::{self, Observed},
    publish::{FIRST_CHECK_MS, MAX_CHECK_MS},
    window::{Order, Windows},
};
use redial_proto::{CallId, ErrorClass, JobRef, RetryBudget};
use redial_records::{Backlog, BacklogPart, CallRecord, LiveConsumer};

use super::{CONSUMER, LEASE, TENANT, TOOL, World, dispatcher::CommitOutcome, named, tables::CallRow, worker::PERMITS};
use crate::{Invariant, Mutation};

/// What a feeder knows of workers and the stream, as of its own last look.
#[derive(Debug)]
pub(super) struct Feeder {
    pub(super) windows: Windows,
    /// A worker counts as live.
    live: bool,
    /// Jobs wait for workers.
    pub(super) queued: bool,
    /// Since when the tool recovers.
    recovering: Option<Time>,
    /// Successes, failures, and since when the tool fails, since that was last written.
    observed: (u32, u32, Option<Time>),
    /// It has published something since it last looked at the stream.
    pub(super) published: bool,
}

impl Feeder {
    pub(super) fn new(window: u64) -> Self {
        let (windows, observed) = (Windows::of_size(window..=window), (0, 0, None));
        Self { windows, live: false, queued: false, recovering: None, observed, published: false }
    }

    /// What is known of the job of a call that is ready.
    pub(super) fn job_state(&self, call: &CallRecord) -> JobState {
        let queued = call.consumer.is_some() && self.queued && self.windows.has(CONSUMER, TOOL);
        if queued { JobState::Queued } else { JobState::Lost }
    }

    /// Why a call waits.
    pub(super) fn waiting(&self, call: &CallRecord) -> Waiting {
        match call.backlog {
            _ if !self.windows.is_served(TOOL) => Waiting::ForWorker { last_seen: None },
            Some(Backlog::Retry) => Waiting::ForRetries { recovering_since: self.recovering },
            _ => Waiting::InBacklog,
        }
    }

    /// Takes note of an attempt that ended.
    pub(super) fn count(&mut self, class: Option<ErrorClass>, now: Time) {
        let (successes, failures, failing_since) = &mut self.observed;
        match class {
            None => (*successes, *failing_since) = (*successes + 1, None),
            Some(class) if health::is_outage(class) => {
                *failures += 1;
                failing_since.get_or_insert(now);
            }
            Some(_) => {}
        }
    }
}

/// A job that was taken from the backlog, and the number of its publication.
type Fed = (JobRef, u32);

impl World<'_> {
    /// Whether the job of a new call is published at once; otherwise the call waits.
    pub(super) fn admit(&mut self, d: usize) -> bool {
        let feeder = &mut self.dispatchers[d].feeder;
        let admitted = self.nats_up && feeder.windows.admit(TOOL, TENANT).is_some();
        feeder.published |= admitted;
        admitted
    }

    /// A round: a look at the workers and at the stream, of which the round may be late or miss one, then retries, then
    /// first attempts.
    pub(super) fn feed(&mut self, d: usize, pick: u32, commit: CommitOutcome) {
        if self.has(Mutation::FeederOff) || !self.nats_up || !self.postgres_up {
            return;
        }
        let look = pick & 3;
        if look < 3 {
            self.look_at_workers(d);
        }
        let unseen = look >= 2 || self.dispatchers[d].feeder.published;
        if look < 2 {
            self.look_at_stream(d);
        }
        let waiting = part(Backlog::Job);
        let waits = self.is_waiting(Backlog::Job);
        self.dispatchers[d].feeder.windows.set_waiting(waits.then_some(&waiting));
        let owed = !unseen && self.has_room(d);
        let both = self.has(Mutation::RoomGivenTwice).then(|| self.orders(d, Backlog::Job));
        let (retries, first) =
            if pick & 4 == 0 { (commit, CommitOutcome::Committed) } else { (CommitOutcome::Committed, commit) };
        let orders = self.orders(d, Backlog::Retry);
        let Some(again) = self.feed_part(d, retries, |world| world.take_retries(d, &orders)) else { return };
        let orders = both.unwrap_or_else(|| self.orders(d, Backlog::Job));
        let take = |world: &mut Self| orders.iter().flat_map(|order| world.take(order, order.most)).collect();
        let Some(new) = self.feed_part(d, first, take) else { return };
        let tokens = self.health.tokens;
        let waits = self.is_waiting(Backlog::Job) || (self.is_waiting(Backlog::Retry) && tokens >= 1.0);
        if owed && waits && again + new == 0 {
            let found = || format!("a round took no call, with room and {tokens} tokens");
            self.report_violation(Invariant::WaitsWithReason, found);
        }
    }

    /// Learns whether a worker lives. What was published for workers that are gone goes back to the backlog; after an
    /// outage they may not have had the time to say that they live.
    pub(super) fn look_at_workers(&mut self, d: usize) {
        let (live, uptime) = (self.seen_at > self.now - LEASE, self.uptime());
        let slots = (PERMITS * self.workers.len()) as u32;
        let dispatcher = &mut self.dispatchers[d];
        let keep = !dispatcher.detector.grace(uptime).is_zero();
        if live == dispatcher.feeder.live || (!live && keep) {
            return;
        }
        dispatcher.feeder.live = live;
        let (name, tools) = (CONSUMER.to_owned(), [TOOL.to_owned()].into());
        let consumer = LiveConsumer { name, pool: String::new(), tools, slots, workers: 1 };
        dispatcher.feeder.windows.set_consumers(if live { std::slice::from_ref(&consumer) } else { &[] });
        if !live {
            self.log(|| format!("    dispatcher {d} finds no live workers"));
            let flag = (!self.has(Mutation::RequeuedWithoutBacklog)).then_some(Backlog::Job);
            let published = |row: &&mut CallRow| row.is_ready() && row.record.backlog.is_none();
            self.calls.iter_mut().filter(published).for_each(|row| row.put_back(flag));
        }
    }

    /// Counts the jobs on the stream.
    pub(super) fn look_at_stream(&mut self, d: usize) {
        let found = (!self.jobs.is_empty()).then(|| ((CONSUMER.to_owned(), TOOL.to_owned()), self.jobs.len() as u64));
        let now = self.uptime();
        let feeder = &mut self.dispatchers[d].feeder;
        feeder.windows.set_depths(&found.into_iter().collect::<HashMap<_, _>>(), now);
        feeder.published = false;
    }

    /// What to publish now of one part of the backlog.
    fn orders(&self, d: usize, of: Backlog) -> Vec<Order> {
        let waiting = self.is_waiting(of).then(|| part(of));
        self.dispatchers[d].feeder.windows.orders(waiting.as_slice())
    }

    fn is_waiting(&self, part: Backlog) -> bool {
        self.calls.iter().any(|row| row.record.backlog == Some(part))
    }

    /// Takes calls in a transaction and publishes their jobs; returns how many. `None` if that failed.
    fn feed_part(
        &mut self,
        d: usize,
        commit: CommitOutcome,
        take: impl FnOnce(&mut Self) -> Vec<Fed>,
    ) -> Option<usize> {
        let fed = self.transaction(d, commit, take)?;
        for (job, publish_no) in &fed {
            self.log(|| format!("dispatcher {d} feeds attempt {}", named(*job)));
            self.dispatchers[d].feeder.windows.publish(CONSUMER, TOOL, TENANT, 1);
            self.publish(d, *job, *publish_no);
        }
        Some(fed.len())
    }

    /// Credits what was observed of the tool, and takes as many retries as its health allows.
    fn take_retries(&mut self, d: usize, orders: &[Order]) -> Vec<Fed> {
        let (now, mut fed) = (self.now, Vec::new());
        let (successes, failures, since) = std::mem::take(&mut self.dispatchers[d].feeder.observed);
        let failing_for = since.map(|since| (now - since).to_std().unwrap_or_default());
        let (observed, waiting) = (Observed { successes, failures, failing_for }, self.is_waiting(Backlog::Retry));
        let mut after = health::after(&self.health, &RetryBudget::default(), observed, waiting, now);
        for order in orders {
            let tokens = after.tokens;
            let allowed = health::take(&mut after, order.most);
            let taken = self.take(order, allowed);
            if f64::from(allowed) > tokens && !taken.is_empty() {
                let found = || format!("{} retries for {tokens} tokens", taken.len());
                self.report_violation(Invariant::RetriesWithinTokens, found);
            }
            // What was taken and not used goes back.
            after.tokens += f64::from(allowed - taken.len() as u32);
            fed.extend(taken);
        }
        self.dispatchers[d].feeder.recovering = after.recovering_since;
        self.health = after;
        fed
    }

    /// Takes the first calls of one part of the backlog.
    fn take(&mut self, order: &Order, most: u32) -> Vec<Fed> {
        let now = self.now;
        let waits = self.calls.iter().filter(|row| row.record.backlog == Some(order.part.backlog));
        let mut waiting: Vec<(Time, CallId)> = waits.map(|row| (row.backlog_at, row.record.id)).collect();
        waiting.sort_unstable();
        waiting.truncate(most as usize);
        let unchecked = self.has(Mutation::FedAndNotChecked);
        let take = |(_, call): (Time, CallId)| {
            let row = self.call_mut(call);
            let published = row.record.publish_no.saturating_sub(row.record.attempt).min(16);
            let check = std::time::Duration::from_millis((FIRST_CHECK_MS << published).min(MAX_CHECK_MS));
            row.wake_at = if unchecked { row.record.deadline_at } else { row.record.deadline_at.min(now + check) };
            (row.record.backlog, row.record.published_at) = (None, Some(now));
            row.record.consumer = Some(CONSUMER.to_owned());
            row.record.publish_no += 1;
            (JobRef { call, attempt: row.record.attempt + 1 }, row.record.publish_no)
        };
        waiting.into_iter().map(take).collect()
    }

    // ---- Checks ----

    /// Something waits, a worker lives, and the stream has fewer jobs than a window holds.
    fn has_room(&self, d: usize) -> bool {
        let waits = Backlog::ALL.iter().any(|part| self.is_waiting(*part));
        waits && self.dispatchers[d].feeder.live && (self.jobs.len() as u64) < self.setup.window()
    }

    /// A dispatcher publishes a job: it knows of live workers, and there are not too many on the stream. Jobs that NATS
    /// repeats by itself do not count.
    pub(super) fn check_publication(&mut self, d: usize) {
        if !self.dispatchers[d].feeder.live {
            let found = || format!("dispatcher {d} publishes a job and knows of no live worker");
            self.report_violation(Invariant::PublishedForLiveWorkers, found);
        }
        let found = self.jobs.iter().filter(|message| !message.repeated).count() as u64;
        let (window, others) = (self.setup.window(), self.dispatchers.len() as u64 - 1);
        let most = window + others * window.div_ceil(2);
        if found > most {
            self.report_violation(Invariant::StreamIsShort, || format!("{found} jobs, and {most} are allowed"));
        }
    }

    /// Each ready call waits in the backlog, or is checked soon.
    pub(super) fn check_ready(&mut self) {
        let soon = self.now + std::time::Duration::from_millis(MAX_CHECK_MS);
        let forgotten = |row: &&CallRow| row.is_ready() && row.record.backlog.is_none() && row.wake_at > soon;
        if let Some(row) = self.calls.iter().find(forgotten) {
            let (call, at) = (row.record.id, row.wake_at);
            let found = || format!("call {call} is ready, does not wait, and is checked at {at} only");
            self.report_violation(Invariant::ReadyIsFound, found);
        }
    }
}

/// One part of the backlog.
fn part(backlog: Backlog) -> BacklogPart {
    BacklogPart { tool: TOOL.to_owned(), tenant: TENANT.to_owned(), backlog }
}
