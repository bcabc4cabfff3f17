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

use super::{
    LEASE, TENANT, TOOLS, ToolNo, ToolSet, World, dispatcher::CommitOutcome, has_tool, named, tables::CallRow, tool_no,
    worker::PERMITS,
};
use crate::{Invariant, Mutation};

/// What a feeder knows of workers and the stream, as of its own last look.
#[derive(Debug)]
pub(super) struct Feeder {
    pub(super) windows: Windows,
    /// The consumers that count as live, with their workers.
    live: Vec<(ToolSet, u32)>,
    /// Consumers whose jobs wait for workers.
    pub(super) queued: Vec<ToolSet>,
    /// Since when each tool recovers.
    recovering: [Option<Time>; TOOLS.len()],
    /// By tool: successes, failures, and since when it fails, since that was last written.
    observed: [(u32, u32, Option<Time>); TOOLS.len()],
    /// It has published something since it last looked at the stream.
    pub(super) published: bool,
}

impl Feeder {
    pub(super) fn new(window: u64) -> Self {
        let windows = Windows::of_size(window..=window);
        let (live, queued, recovering) = (Vec::new(), Vec::new(), Default::default());
        Self { windows, live, queued, recovering, observed: Default::default(), published: false }
    }

    /// What is known of the job of a call that is ready.
    pub(super) fn job_state(&self, call: &CallRecord) -> JobState {
        let queued = |name: &String| {
            self.queued.iter().any(|set| set.to_string() == *name) && self.windows.has(name, &call.tool)
        };
        if call.consumer.as_ref().is_some_and(queued) { JobState::Queued } else { JobState::Lost }
    }

    /// Why a call waits.
    pub(super) fn waiting(&self, call: &CallRecord) -> Waiting {
        if !self.windows.is_served(&call.tool) {
            return Waiting::ForWorker { last_seen: None };
        }
        match call.backlog {
            Some(Backlog::Retry) => Waiting::ForRetries { recovering_since: self.recovering[tool_no(&call.tool)] },
            _ => Waiting::InBacklog,
        }
    }

    /// Takes note of an attempt that ended.
    pub(super) fn count(&mut self, tool: ToolNo, class: Option<ErrorClass>, now: Time) {
        let (successes, failures, failing_since) = &mut self.observed[tool];
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

/// A job that was taken from the backlog.
struct Fed {
    job: JobRef,
    publish_no: u32,
    consumer: ToolSet,
    tool: ToolNo,
}

impl World<'_> {
    /// Where the job of a new call is published at once; `None` if the call waits.
    pub(super) fn admit(&mut self, d: usize, tool: &str) -> Option<ToolSet> {
        if !self.nats_up {
            return None;
        }
        let feeder = &mut self.dispatchers[d].feeder;
        let consumer = feeder.windows.admit(tool, TENANT)?;
        feeder.published = true;
        consumer.parse().ok()
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
        let waiting = self.waiting(Backlog::Job);
        self.dispatchers[d].feeder.windows.set_waiting(&waiting);
        let owed = if unseen { [false; TOOLS.len()] } else { self.tools_with_room(d) };
        let both = self.has(Mutation::RoomGivenTwice).then(|| self.orders(d, Backlog::Job));
        let (retries, first) =
            if pick & 4 == 0 { (commit, CommitOutcome::Committed) } else { (CommitOutcome::Committed, commit) };
        let orders = self.orders(d, Backlog::Retry);
        let Some(mut taken) = self.feed_part(d, retries, |world| world.take_retries(d, &orders)) else { return };
        let orders = both.unwrap_or_else(|| self.orders(d, Backlog::Job));
        let take = |world: &mut Self| orders.iter().flat_map(|order| world.take(order, order.most)).collect();
        let Some(more) = self.feed_part(d, first, take) else { return };
        taken |= more;
        self.check_fed(&owed, taken);
    }

    /// Learns which consumers have live workers. What was published for workers that are gone goes back to the backlog;
    /// after an outage they may not have had the time to say that they live.
    pub(super) fn look_at_workers(&mut self, d: usize) {
        let mut live: Vec<(ToolSet, u32)> = (1..=super::ALL_TOOLS)
            .map(|set| (set, self.live_workers(set)))
            .filter(|(_, workers)| *workers > 0)
            .collect();
        let uptime = self.uptime();
        let dispatcher = &mut self.dispatchers[d];
        if live == dispatcher.feeder.live {
            return;
        }
        let before = std::mem::take(&mut dispatcher.feeder.live);
        let gone: Vec<_> = before.into_iter().filter(|(set, _)| !live.iter().any(|(known, _)| known == set)).collect();
        let keep = !dispatcher.detector.grace(uptime).is_zero();
        if keep {
            live.extend_from_slice(&gone);
        }
        dispatcher.feeder.windows.set_consumers(&live.iter().map(|(set, n)| consumer(*set, *n)).collect::<Vec<_>>());
        dispatcher.feeder.live = live;
        for (set, _) in gone.into_iter().filter(|_| !keep) {
            self.log(|| format!("    dispatcher {d} finds consumer {set} without workers"));
            self.requeue(set);
        }
    }

    fn live_workers(&self, set: ToolSet) -> u32 {
        let is_live = |seen_at: Time| seen_at > self.now - LEASE;
        let workers = self.registered.iter().filter(|row| row.tools == set && !row.draining && is_live(row.seen_at));
        workers.count() as u32
    }

    /// Counts the jobs on the stream.
    pub(super) fn look_at_stream(&mut self, d: usize) {
        let mut depths = HashMap::<(String, String), u64>::new();
        for message in &self.jobs {
            let tool = self.call(message.job.call).record.tool.clone();
            *depths.entry((message.consumer.to_string(), tool)).or_default() += 1;
        }
        let now = self.uptime();
        let feeder = &mut self.dispatchers[d].feeder;
        feeder.windows.set_depths(&depths, now);
        feeder.published = false;
    }

    /// What to publish now of one part of the backlogs.
    fn orders(&self, d: usize, part: Backlog) -> Vec<Order> {
        self.dispatchers[d].feeder.windows.orders(&self.waiting(part))
    }

    fn waiting(&self, backlog: Backlog) -> Vec<BacklogPart> {
        let waits = |tool: &ToolNo| self.is_waiting(*tool, backlog);
        let part = |tool: ToolNo| BacklogPart { tool: TOOLS[tool].to_owned(), tenant: TENANT.to_owned(), backlog };
        (0..TOOLS.len()).filter(waits).map(part).collect()
    }

    fn is_waiting(&self, tool: ToolNo, part: Backlog) -> bool {
        self.calls.iter().any(|row| row.record.backlog == Some(part) && row.tool() == tool)
    }

    /// Takes calls in a transaction and publishes their jobs; returns their tools. `None` if that failed.
    fn feed_part(
        &mut self,
        d: usize,
        commit: CommitOutcome,
        take: impl FnOnce(&mut Self) -> Vec<Fed>,
    ) -> Option<ToolSet> {
        let fed = self.transaction(d, commit, take)?;
        let mut tools = 0;
        for Fed { job, publish_no, consumer, tool } in fed {
            self.log(|| format!("dispatcher {d} feeds attempt {} to consumer {consumer}", named(job)));
            self.dispatchers[d].feeder.windows.publish(&consumer.to_string(), TOOLS[tool], TENANT, 1);
            tools |= 1 << tool;
            self.publish(d, job, publish_no, consumer);
        }
        Some(tools)
    }

    /// Credits what was observed of tools, and takes as many retries as their health allows.
    fn take_retries(&mut self, d: usize, orders: &[Order]) -> Vec<Fed> {
        let (now, mut fed) = (self.now, Vec::new());
        for tool in 0..TOOLS.len() {
            let (successes, failures, since) = std::mem::take(&mut self.dispatchers[d].feeder.observed[tool]);
            let failing_for = since.map(|since| (now - since).to_std().unwrap_or_default());
            let observed = Observed { successes, failures, failing_for };
            let waiting = self.is_waiting(tool, Backlog::Retry);
            let mut after = health::after(&self.health[tool], &RetryBudget::default(), observed, waiting, now);
            for order in orders.iter().filter(|order| tool_no(&order.part.tool) == tool) {
                let tokens = after.tokens;
                let allowed = health::take(&mut after, order.most);
                let taken = self.take(order, allowed);
                if f64::from(allowed) > tokens && !taken.is_empty() {
                    let found = || format!("{} retries of tool {tool} for {tokens} tokens", taken.len());
                    self.report_violation(Invariant::RetriesWithinTokens, found);
                }
                // What was taken and not used goes back.
                after.tokens += f64::from(allowed - taken.len() as u32);
                fed.extend(taken);
            }
            self.dispatchers[d].feeder.recovering[tool] = after.recovering_since;
            self.health[tool] = after;
        }
        fed
    }

    /// Takes the first calls of one part of a tool's backlog.
    fn take(&mut self, order: &Order, most: u32) -> Vec<Fed> {
        let (now, tool) = (self.now, tool_no(&order.part.tool));
        let consumer = order.consumer.parse().unwrap_or(0);
        let waits = |row: &&CallRow| row.record.backlog == Some(order.part.backlog) && row.tool() == tool;
        let mut waiting: Vec<(Time, CallId)> =
            self.calls.iter().filter(waits).map(|row| (row.backlog_at, row.record.id)).collect();
        waiting.sort_unstable();
        waiting.truncate(most as usize);
        let unchecked = self.has(Mutation::FedAndNotChecked);
        let take = |(_, call): (Time, CallId)| {
            let row = self.call_mut(call);
            let published = row.record.publish_no.saturating_sub(row.record.attempt).min(16);
            let check = std::time::Duration::from_millis((FIRST_CHECK_MS << published).min(MAX_CHECK_MS));
            row.wake_at = if unchecked { row.record.deadline_at } else { row.record.deadline_at.min(now + check) };
            (row.record.backlog, row.record.published_at) = (None, Some(now));
            row.record.consumer = Some(order.consumer.clone());
            row.record.publish_no += 1;
            let job = JobRef { call, attempt: row.record.attempt + 1 };
            Fed { job, publish_no: row.record.publish_no, consumer, tool }
        };
        waiting.into_iter().map(take).collect()
    }

    /// Puts unclaimed calls back whose jobs were published to this consumer.
    fn requeue(&mut self, consumer: ToolSet) {
        let flag = (!self.has(Mutation::RequeuedWithoutBacklog)).then_some(Backlog::Job);
        let there = |row: &&mut CallRow| {
            row.is_ready() && row.record.backlog.is_none() && row.record.consumer == Some(consumer.to_string())
        };
        self.calls.iter_mut().filter(there).for_each(|row| row.put_back(flag));
    }

    // ---- Checks ----

    /// The tools for which something waits, and of which a live consumer has fewer jobs than its window holds.
    fn tools_with_room(&self, d: usize) -> [bool; TOOLS.len()] {
        let window = self.setup.window();
        let has_room = |tool: ToolNo| {
            let mut live = self.dispatchers[d].feeder.live.iter().filter(|(set, _)| has_tool(*set, tool));
            live.any(|(set, _)| self.unclaimed(*set, tool, true) < window)
        };
        std::array::from_fn(|tool| Backlog::ALL.iter().any(|part| self.is_waiting(tool, *part)) && has_room(tool))
    }

    /// The jobs of a tool on the stream that nobody has claimed, delivered or not.
    fn unclaimed(&self, consumer: ToolSet, tool: ToolNo, repeated: bool) -> u64 {
        let there = |message: &&super::JobMessage| {
            let same = message.consumer == consumer && self.call(message.job.call).tool() == tool;
            same && (repeated || !message.repeated)
        };
        self.jobs.iter().filter(there).count() as u64
    }

    /// The round took something of each tool for which something waits without a reason.
    fn check_fed(&mut self, owed: &[bool], taken: ToolSet) {
        for tool in (0..owed.len()).filter(|tool| owed[*tool]) {
            let tokens = self.health[tool].tokens;
            let waits = self.is_waiting(tool, Backlog::Job) || (self.is_waiting(tool, Backlog::Retry) && tokens >= 1.0);
            if waits && !has_tool(taken, tool) {
                let found = || format!("a round took no call of tool {tool}, with room and {tokens} tokens");
                self.report_violation(Invariant::WaitsWithReason, found);
            }
        }
    }

    /// A dispatcher publishes a job: it knows of live workers with the tool, and there are not too many on the stream.
    pub(super) fn check_publication(&mut self, d: usize, consumer: ToolSet, job: JobRef) {
        let tool = self.call(job.call).tool();
        let live = self.dispatchers[d].feeder.live.iter().any(|(set, _)| *set == consumer);
        if !live || !has_tool(consumer, tool) {
            let found = || format!("dispatcher {d} publishes a job of tool {tool} for consumer {consumer}");
            self.report_violation(Invariant::PublishedForLiveWorkers, found);
        }
        let found = self.unclaimed(consumer, tool, false);
        let (window, others) = (self.setup.window(), self.dispatchers.len() as u64 - 1);
        let most = window + others * window.div_ceil(2);
        if found > most {
            let found = || format!("{found} jobs of tool {tool} for consumer {consumer}, and {most} are allowed");
            self.report_violation(Invariant::StreamIsShort, found);
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

/// A consumer with live workers, as dispatchers read it.
fn consumer(set: ToolSet, workers: u32) -> LiveConsumer {
    let tools = (0..TOOLS.len()).filter(|tool| has_tool(set, *tool)).map(|tool| TOOLS[tool].to_owned()).collect();
    let slots = workers * PERMITS as u32;
    LiveConsumer { name: set.to_string(), pool: String::new(), tools, slots, workers }
}
