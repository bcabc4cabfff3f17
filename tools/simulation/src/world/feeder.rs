//! What a dispatcher publishes: the windows of the short queue, and who has a turn. Two tenants share one tool.

use std::collections::{BTreeMap, HashMap};

use redial_engine::{publish::FIRST_CHECK_MS, window::Windows};
use redial_proto::{CallId, JobRef};
use redial_records::{BacklogPart, LiveConsumer};

use super::{CONSUMER, TOOL, World, dispatcher::CommitOutcome, named};
use crate::{Invariant, Mutation};

/// Of each worker, so that there is room for one or two jobs in a round.
const SLOTS: u32 = 4;

/// What a dispatcher knows of the short queue.
#[derive(Debug)]
pub(super) struct Feeder {
    windows: Windows,
    /// A tenant that could have had a turn in the last round, and had none.
    passed_over: Option<String>,
}

/// The calls of one part of the backlog.
#[derive(Default)]
struct Part {
    waits: Vec<CallId>,
    taken: Vec<CallId>,
}

impl Feeder {
    fn new(workers: u8) -> Self {
        let mut windows = Windows::default();
        windows.expect_several_tenants(true);
        windows.set_consumers(&[LiveConsumer {
            name: CONSUMER.to_owned(),
            pool: String::new(),
            tools: [TOOL.to_owned()].into(),
            slots: u32::from(workers) * SLOTS,
            workers: workers.into(),
        }]);
        Self { windows, passed_over: None }
    }
}

impl World {
    pub(super) fn new_feeder(&self) -> Feeder {
        let mut feeder = Feeder::new(self.setup.workers);
        self.look_at_stream(&mut feeder.windows);
        feeder
    }

    fn look_at_stream(&self, windows: &mut Windows) {
        let unclaimed = HashMap::from([((CONSUMER.to_owned(), TOOL.to_owned()), self.jobs.len() as u64)]);
        windows.set_depths(&unclaimed, self.uptime());
    }

    /// True if the job of a new call is published at once.
    pub(super) fn admits(&mut self, d: usize, call: CallId) -> bool {
        let tenant = self.call(call).tenant;
        let windows = &mut self.dispatchers[d].feeder.windows;
        let Some(consumer) = windows.admit(TOOL, tenant) else { return false };
        windows.arrived(&consumer, TOOL);
        true
    }

    /// Takes calls that wait, as far as there is room, and publishes their jobs.
    pub(super) fn feed(&mut self, d: usize, commit: CommitOutcome) {
        if self.has(Mutation::FeederOff) || !self.nats_up || !self.postgres_up {
            return;
        }
        let chosen = self.choose(d);
        let take = |world: &mut Self| chosen.into_iter().map(|call| world.take(call)).collect::<Vec<_>>();
        for (job, publish_no) in self.transaction(d, commit, take).unwrap_or_default() {
            self.log(|| format!("dispatcher {d} feeds attempt {}", named(job)));
            self.publish(job, publish_no);
        }
    }

    /// Returns the calls that a round takes.
    fn choose(&mut self, d: usize) -> Vec<CallId> {
        let mut parts = BTreeMap::<BacklogPart, Part>::new();
        for row in &self.calls {
            let Some(backlog) = row.record.backlog else { continue };
            let part = BacklogPart { tool: TOOL.to_owned(), tenant: row.tenant.to_owned(), backlog };
            parts.entry(part).or_default().waits.push(row.record.id);
        }
        let has_tokens = self.chance() & 3 != 3;
        let mut windows = std::mem::take(&mut self.dispatchers[d].feeder.windows);
        self.look_at_stream(&mut windows);
        let mut waiting: Vec<BacklogPart> = parts.keys().cloned().collect();
        if self.has(Mutation::RetriesFirst) && has_tokens && waiting.iter().any(|part| part.backlog.is_retry()) {
            waiting.retain(|part| part.backlog.is_retry());
        }
        let mut round = windows.round(&waiting);
        round.allow(TOOL, if has_tokens { u32::MAX } else { 0 });
        while let Some(order) = round.next(u32::MAX) {
            let Some(part) = parts.get_mut(&order.part) else { break };
            let count = part.waits.len().min(order.most as usize);
            part.taken.extend(part.waits.drain(..count));
            windows.had_turn(&order.part);
            windows.publish(&order.consumer, TOOL, &order.part.tenant, count as u64);
            (0..count).for_each(|_| windows.arrived(&order.consumer, TOOL));
            round.took(&order, count as u32);
        }
        self.dispatchers[d].feeder.windows = windows;
        self.check_turns(d, &parts, has_tokens);
        parts.into_values().flat_map(|part| part.taken).collect()
    }

    /// Checks that a tenant with more to run has got as much as each other one, or one less, and so has each of its
    /// kinds; and that one that got nothing gets something in the next round.
    fn check_turns(&mut self, d: usize, parts: &BTreeMap<BacklogPart, Part>, has_tokens: bool) {
        let mut kinds = BTreeMap::<&str, Vec<(usize, bool)>>::new();
        for (part, of) in parts {
            let has_more = !of.waits.is_empty() && (has_tokens || !part.backlog.is_retry());
            kinds.entry(&part.tenant).or_default().push((of.taken.len(), has_more));
        }
        let sum = |kinds: &Vec<(usize, bool)>| {
            kinds.iter().fold((0, false), |(sum, more), (got, has_more)| (sum + got, more || *has_more))
        };
        let tenants: Vec<(usize, bool)> = kinds.values().map(sum).collect();
        let most = |many: &[(usize, bool)]| many.iter().map(|(got, _)| *got).max().unwrap_or(0);
        let is_unfair = |many: &[(usize, bool)]| many.iter().any(|(got, more)| *more && got + 1 < most(many));
        let mut passed_over = kinds.keys().zip(&tenants).filter(|(_, (got, more))| *more && *got == 0);
        let passed_over = passed_over.next().filter(|_| most(&tenants) > 0).map(|(tenant, _)| (*tenant).to_owned());
        let waits = |tenant: &String| kinds.get(tenant.as_str()).is_some_and(|kinds| sum(kinds).1);
        let before = self.dispatchers[d].feeder.passed_over.take().filter(waits);
        let again = passed_over.is_some() && passed_over == before;
        if again || is_unfair(&tenants) || kinds.values().any(|kinds| is_unfair(kinds)) {
            let found = format!("by tenant {kinds:?}; {passed_over:?} got nothing, again: {again}");
            self.report_violation(Invariant::WhoWaitsHasTurns, || found);
        }
        self.dispatchers[d].feeder.passed_over = if most(&tenants) > 0 { passed_over } else { before };
    }

    /// Takes a call; returns its job, and the number of its publication.
    fn take(&mut self, call: CallId) -> (JobRef, u32) {
        let (now, unchecked) = (self.now, self.has(Mutation::FedAndNotChecked));
        let check = now + std::time::Duration::from_millis(FIRST_CHECK_MS);
        let row = self.call_mut(call);
        row.wake_at = if unchecked { row.record.deadline_at } else { row.record.deadline_at.min(check) };
        (row.record.backlog, row.record.published_at) = (None, Some(now));
        row.record.consumer = Some(CONSUMER.to_owned());
        row.record.publish_no += 1;
        (JobRef { call: row.record.id, attempt: row.record.attempt + 1 }, row.record.publish_no)
    }
}
