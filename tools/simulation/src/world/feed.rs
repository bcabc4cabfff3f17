//! The rounds of a feeder: it publishes the jobs of calls that wait as far as windows and retry tokens allow.

use std::collections::HashMap;

use redial_engine::{
    health::{self, Observed},
    publish::{FIRST_CHECK_MS, MAX_CHECK_MS},
    window::Order,
};
use redial_proto::{CallState, RetryBudget};
use redial_records::{Backlog, BacklogPart};

use super::{
    clock::{Ms, duration, time},
    feeder::Live,
    ids::{CallNo, ConsumerNo, TENANT, TOOLS, ToolNo, ToolSet, consumer_name, consumer_no, has_tool, tool_no},
    messages::Job,
    state::World,
    tables::CallRow,
    transaction::CommitOutcome,
};
use crate::{Invariant, Mutation};

/// A job that was taken from the backlog.
struct Fed {
    job: Job,
    publish_no: u32,
    consumer: ConsumerNo,
    tool: ToolNo,
}

impl World {
    /// Where the job of a new call is published at once; `None` if the call waits.
    pub(super) fn admit(&mut self, d: usize, tool: ToolNo) -> Option<ConsumerNo> {
        if !self.nats_up {
            return None;
        }
        let feeder = &mut self.dispatchers[d].feeder;
        let consumer = feeder.windows.admit(TOOLS[usize::from(tool)], TENANT)?;
        feeder.published = true;
        Some(consumer_no(&consumer))
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
        let idle =
            !self.tables.calls.iter().any(|row| row.backlog.is_some()) && !self.dispatchers[d].feeder.has_observed();
        if idle && self.draining {
            return;
        }
        let unseen = look >= 2 || self.dispatchers[d].feeder.published;
        if look < 2 {
            self.look_at_stream(d);
        }
        self.note_waiting(d);
        if idle {
            return;
        }
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
        let mut live = self.live_consumers();
        let dispatcher = &mut self.dispatchers[d];
        if live == dispatcher.feeder.live {
            return;
        }
        let is_gone = |one: &&Live| !live.iter().any(|other| other.consumer == one.consumer);
        let gone: Vec<Live> = dispatcher.feeder.live.iter().filter(is_gone).copied().collect();
        let keep = !dispatcher.detector.grace(duration(self.now)).is_zero();
        if keep {
            live.extend_from_slice(&gone);
        }
        dispatcher.feeder.windows.set_consumers(&live.iter().copied().map(Live::record).collect::<Vec<_>>());
        dispatcher.feeder.live = live;
        for one in gone.iter().filter(|_| !keep) {
            self.log(|| format!("    dispatcher {d} finds consumer {} without workers", one.consumer));
            self.requeue_lost(Ms::MIN, Some(one.consumer));
        }
    }

    /// Counts the jobs on the stream, and learns for which consumers they wait although no worker asks for one.
    pub(super) fn look_at_stream(&mut self, d: usize) {
        let mut depths = HashMap::<(String, String), u64>::new();
        for message in &self.jobs {
            let tool = TOOLS[usize::from(self.tool_of_call(message.job.call))];
            *depths.entry((consumer_name(message.consumer), tool.to_owned())).or_default() += 1;
        }
        let now = duration(self.now);
        let feeder = &mut self.dispatchers[d].feeder;
        feeder.windows.set_depths(&depths, now);
        feeder.published = false;
    }

    /// The dispatcher learns of which tools something waits.
    fn note_waiting(&mut self, d: usize) {
        let waiting = self.waiting(Backlog::Job);
        self.dispatchers[d].feeder.windows.set_waiting(&waiting);
    }

    /// What to publish now of one part of the backlogs.
    fn orders(&self, d: usize, part: Backlog) -> Vec<Order> {
        self.dispatchers[d].feeder.windows.orders(&self.waiting(part))
    }

    fn waiting(&self, backlog: Backlog) -> Vec<BacklogPart> {
        let waits = |tool: &(ToolNo, &str)| self.is_waiting(tool.0, backlog);
        let part = |tool: &str| BacklogPart { tool: tool.to_owned(), tenant: TENANT.to_owned(), backlog };
        (0..).zip(TOOLS).filter(waits).map(|(_, name)| part(name)).collect()
    }

    fn is_waiting(&self, tool: ToolNo, part: Backlog) -> bool {
        self.tables.calls.iter().any(|row| row.tool == tool && row.backlog == Some(part))
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
            self.log(|| {
                format!("dispatcher {d} feeds attempt {} of call {} to consumer {consumer}", job.attempt, job.call)
            });
            let feeder = &mut self.dispatchers[d].feeder;
            feeder.windows.publish(&consumer_name(consumer), TOOLS[usize::from(tool)], TENANT, 1);
            feeder.published = true;
            tools |= 1 << tool;
            self.publish(d, job, publish_no, consumer);
        }
        Some(tools)
    }

    /// Credits what was observed of tools, and takes as many retries as their health allows.
    fn take_retries(&mut self, d: usize, orders: &[Order]) -> Vec<Fed> {
        let (now, mut fed) = (self.now, Vec::new());
        for tool in 0..TOOLS.len() as ToolNo {
            let n = usize::from(tool);
            let observed = self.dispatchers[d].feeder.take_observed(tool, now);
            let waiting = self.is_waiting(tool, Backlog::Retry);
            if observed == Observed::default() && !waiting {
                continue;
            }
            let mut after =
                health::after(&self.tables.health[n], &RetryBudget::default(), observed, waiting, time(now));
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
            self.dispatchers[d].feeder.recovering[n] = after.recovering_since;
            self.tables.health[n] = after;
        }
        fed
    }

    /// `feed.sql`: takes the first calls of one part of a tool's backlog.
    fn take(&mut self, order: &Order, most: u32) -> Vec<Fed> {
        let (now, tool, consumer) = (self.now, tool_no(&order.part.tool), consumer_no(&order.consumer));
        let rows = (0..).zip(&self.tables.calls);
        let waits = |(_, row): &(CallNo, &CallRow)| row.tool == tool && row.backlog == Some(order.part.backlog);
        let mut waiting: Vec<(Ms, CallNo)> = rows.filter(waits).map(|(call, row)| (row.backlog_at, call)).collect();
        waiting.sort_unstable();
        waiting.truncate(most as usize);
        let unchecked = self.has(Mutation::FedAndNotChecked);
        let take = |(_, call): (Ms, CallNo)| {
            let row = &mut self.tables.calls[usize::from(call)];
            let published = row.publish_no.saturating_sub(row.attempt).min(16);
            let check = (FIRST_CHECK_MS << published).min(MAX_CHECK_MS).cast_signed();
            row.wake_at = if unchecked { row.deadline_at } else { row.deadline_at.min(now + check) };
            (row.backlog, row.consumer, row.published_at) = (None, Some(consumer), Some(now));
            row.publish_no += 1;
            Fed { job: Job { call, attempt: row.attempt + 1 }, publish_no: row.publish_no, consumer, tool }
        };
        waiting.into_iter().map(take).collect()
    }

    /// `requeue_lost.sql`: puts unclaimed calls back whose jobs were published after this, or to this consumer.
    pub(super) fn requeue_lost(&mut self, after: Ms, consumer: Option<ConsumerNo>) {
        let soon = self.now + MAX_CHECK_MS.cast_signed();
        let flag = (!self.has(Mutation::RequeuedWithoutBacklog)).then_some(Backlog::Job);
        for row in self.tables.calls.iter_mut().filter(|row| row.exists && row.state == CallState::Ready) {
            let published = row.published_at.is_some_and(|at| at > after);
            let there = consumer.is_none() || row.consumer == consumer;
            if row.backlog.is_none() && row.wake_at <= soon && published && there {
                row.put_back(flag);
            }
        }
    }

    // ---- Checks ----

    /// The tools for which something waits, and of which a live consumer has fewer jobs than its window holds.
    fn tools_with_room(&self, d: usize) -> [bool; TOOLS.len()] {
        let window = self.setup.window() as usize;
        let has_room = |tool: ToolNo| {
            let mut live = self.dispatchers[d].feeder.live.iter().filter(|one| has_tool(one.tools, tool));
            live.any(|one| self.jobs_of(one.consumer, tool).count() < window)
        };
        std::array::from_fn(|n| {
            let tool = n as ToolNo;
            Backlog::ALL.iter().any(|part| self.is_waiting(tool, *part)) && has_room(tool)
        })
    }

    /// The round took something of each tool for which something waits without a reason.
    fn check_fed(&mut self, owed: &[bool], taken: ToolSet) {
        for tool in (0..).zip(owed).filter(|(_, owed)| **owed).map(|(tool, _)| tool) {
            let tokens = self.tables.health[usize::from(tool)].tokens;
            let waits = self.is_waiting(tool, Backlog::Job) || (self.is_waiting(tool, Backlog::Retry) && tokens >= 1.0);
            if waits && !has_tool(taken, tool) {
                let found = || format!("a round took no call of tool {tool}, with room and {tokens} tokens");
                self.report_violation(Invariant::WaitsWithReason, found);
            }
        }
    }

    /// A dispatcher publishes a job: it knows of live workers with the tool, and there are not too many on the stream.
    pub(super) fn check_publication(&mut self, d: usize, consumer: ConsumerNo, tool: ToolNo) {
        let live =
            self.dispatchers[d].feeder.live.iter().any(|one| one.consumer == consumer && has_tool(one.had, tool));
        if !live {
            let found = || format!("dispatcher {d} publishes a job of tool {tool} for consumer {consumer}");
            self.report_violation(Invariant::PublishedForLiveWorkers, found);
        }
        let found = self.jobs_of(consumer, tool).filter(|message| !message.repeated).count() as u64;
        let (window, others) = (self.setup.window(), self.dispatchers.len() as u64 - 1);
        let most = window + others * window.div_ceil(2);
        if found > most {
            let found = || format!("{found} jobs of tool {tool} for consumer {consumer}, and {most} are allowed");
            self.report_violation(Invariant::StreamIsShort, found);
        }
    }

    /// Each ready call waits in the backlog, or is checked soon.
    pub(super) fn check_ready(&mut self) {
        let soon = self.now + MAX_CHECK_MS.cast_signed();
        let forgotten =
            |row: &CallRow| row.exists && row.state == CallState::Ready && row.backlog.is_none() && row.wake_at > soon;
        if let Some(call) = self.tables.calls.iter().position(forgotten) {
            let at = self.tables.calls[call].wake_at / 1_000;
            let found = || format!("call {call} is ready, does not wait, and is checked in second {at} only");
            self.report_violation(Invariant::ReadyIsFound, found);
        }
    }
}
