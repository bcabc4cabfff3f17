//! What a dispatcher knows of the short queue: the windows, who serves which tool, the health of tools, and how far the
//! backlogs are read. The loop that feeds the queue is in [`crate::feed`].

mod consumers;
mod counts;
mod observed;
mod positions;
mod stale;

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use parking_lot::{Mutex, MutexGuard};
use redial_backoff::{Backoff, Waits};
use redial_engine::{
    call::{EXTENSION_MS, JobState, Waiting},
    window::{self, Order, Round, Windows},
};
use redial_proto::{WaitReason, turn};
use redial_records::{Backlog, BacklogPart, CallRecord, LiveConsumer, Time, ToolHealth};
use redial_store::{Granted, MAX_FED, Position, Recovery};
use tokio::sync::Notify;

pub(crate) use self::positions::Search;
use self::{counts::Counts, positions::Positions, stale::Stale};

/// Workers claim the jobs of a consumer in their order, but for those that are delivered again because a worker died: after
/// 30 s. A job that is so much older than one that was claimed is lost.
const OUT_OF_ORDER: TimeDelta = TimeDelta::seconds(60);
/// Pauses after publications that failed.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));

/// What a dispatcher knows of the short queue. Nothing of it outlives the process.
#[derive(Default)]
pub(crate) struct Feeder {
    known: Mutex<Known>,
    work: Notify,
    /// Held while the workers are read and taken note of; holds when that began the last time.
    pub(crate) looking: tokio::sync::Mutex<Option<tokio::time::Instant>>,
}

#[derive(Default)]
struct Known {
    windows: Windows,
    live: Vec<LiveConsumer>,
    /// Consumers that have none any more, whose calls are not in the backlog yet.
    gone: BTreeSet<String>,
    /// Consumers whose jobs wait for workers: none of them asks for a job.
    queued: BTreeSet<String>,
    /// Consumers with jobs that workers gave back for later. After a crash, nats-server may count too many.
    returned: BTreeSet<String>,
    stale: Stale,
    /// When a worker with the tool was last seen, by tool.
    last_seen: HashMap<String, Time>,
    seen_until: Option<Time>,
    /// The health of the tools that do not simply succeed.
    health: HashMap<String, ToolHealth>,
    /// What was observed since it was last written, by tool.
    observed: HashMap<String, Counts>,
    positions: Positions,
    /// When the job claimed last was published, by consumer and tool; not of models, which give jobs back for long.
    claimed: HashMap<String, HashMap<String, Time>>,
    /// Nothing is published before this, because publishing failed.
    paused_until: Option<Instant>,
    /// For publications that failed one after another.
    pauses: Option<Waits>,
}

impl Feeder {
    /// Returns the consumer to which the job of a new call is published at once; `None` if the call waits.
    pub(crate) fn admit(&self, tool: &str, tenant: &str) -> Option<String> {
        let mut known = self.lock();
        if known.is_paused() {
            drop(known);
            return self.hold(tool, tenant);
        }
        let admitted = known.windows.admit(tool, tenant)?;
        let is_low = known.windows.is_low(tool);
        drop(known);
        if is_low {
            self.work.notify_one();
        }
        Some(admitted)
    }

    /// Lets a new call of this tool and tenant wait, and those after it: nothing can be published now.
    pub(crate) fn hold(&self, tool: &str, tenant: &str) -> Option<String> {
        self.lock().windows.waits(tool, tenant);
        None
    }

    /// Notes that a call waits in this part of the backlog. `since`: its position, if it is perhaps before all others.
    pub(crate) fn wake(&self, part: BacklogPart, since: Option<Time>) {
        let mut known = self.lock();
        let runs_soon = match part.backlog {
            Backlog::Job => {
                known.windows.waits(&part.tool, &part.tenant);
                true
            }
            // While the tool fails or recovers, retries are looked at in each round.
            Backlog::Retry => !known.health.contains_key(&part.tool),
        };
        let wakes = runs_soon && !known.is_paused() && known.windows.has_room(&part.tool);
        known.positions.wake(part, since);
        if wakes {
            drop(known);
            self.work.notify_one();
        }
    }

    /// Takes note that these jobs, by consumer and tool, are on the stream, or will not be.
    pub(crate) fn arrived<'a>(&self, jobs: impl Iterator<Item = (&'a str, &'a str)>) {
        let mut known = self.lock();
        jobs.for_each(|(consumer, tool)| known.windows.arrived(consumer, tool));
    }

    /// Returns how many of `jobs`, which are published at the same time, one message may hold.
    pub(crate) fn pack_size(&self, consumer: &str, jobs: usize) -> usize {
        self.lock().live.iter().find(|one| one.name == consumer).map_or(1, |one| window::pack_size(one, jobs))
    }

    /// Says whether the live workers of a consumer have the tool.
    pub(crate) fn has(&self, consumer: &str, tool: &str) -> bool {
        self.lock().windows.has(consumer, tool)
    }

    /// Pauses publishing for a while: jobs could not be published.
    pub(crate) fn pause(&self) {
        let mut known = self.lock();
        if !known.is_paused() {
            let pause = known.pauses.get_or_insert_with(|| PAUSES.waits()).next_wait();
            known.paused_until = Some(Instant::now() + pause);
        }
    }

    /// Publishes again: jobs were taken.
    pub(crate) fn resume(&self) {
        let mut known = self.lock();
        (known.paused_until, known.pauses) = (None, None);
    }

    /// Looks again for calls that are not known of.
    pub(crate) fn recheck(&self) {
        self.search_all();
        self.work.notify_one();
    }

    /// Makes the next search go over everything.
    pub(crate) fn search_all(&self) {
        self.lock().positions.search_all();
    }

    pub(crate) fn search(&self, at: Instant) -> Search {
        let Known { positions, windows, .. } = &mut *self.lock();
        positions.search(&windows.served().collect(), at)
    }

    pub(crate) fn found(&self, found: Vec<Position>) {
        if self.lock().positions.found(found) {
            self.work.notify_one();
        }
    }

    /// Ends a search, which began at this time of the database; `None` if it failed.
    pub(crate) fn searched(&self, search: &Search, began: Option<Time>) {
        self.lock().positions.searched(search, began);
    }

    /// Waits until there may be something to do.
    pub(crate) async fn wait(&self) {
        self.work.notified().await;
    }

    pub(crate) fn claimed(&self, granted: &[Granted]) {
        let mut known = self.lock();
        let mut wakes = false;
        for grant in granted {
            wakes |= known.windows.claimed(&grant.tool);
            let Some((consumer, published_at)) = grant.published.as_ref() else { continue };
            if turn::model_name(&grant.tool).is_none() {
                let of_consumer = match known.claimed.get_mut(consumer) {
                    Some(of_consumer) => of_consumer,
                    None => known.claimed.entry(consumer.clone()).or_default(),
                };
                match of_consumer.get_mut(&grant.tool) {
                    Some(latest) => *latest = (*latest).max(*published_at),
                    None => drop(of_consumer.insert(grant.tool.clone(), *published_at)),
                }
            }
        }
        drop(known);
        if wakes {
            self.work.notify_one();
        }
    }

    /// Returns what is known of the job of a call that is ready.
    pub(crate) fn job_state(&self, call: &CallRecord) -> JobState {
        let known = self.lock();
        match &call.consumer {
            Some(consumer)
                if known.windows.has(consumer, &call.tool)
                    && known.is_queued(consumer, &call.tool)
                    && !known.was_passed(consumer, call) =>
            {
                JobState::Queued
            }
            _ => JobState::Lost,
        }
    }

    pub(crate) fn waiting(&self, call: &CallRecord) -> Waiting {
        let known = self.lock();
        if !known.windows.is_served(&call.tool) {
            return Waiting::ForWorker { last_seen: known.last_seen.get(&call.tool).copied() };
        }
        match (call.backlog, known.health.get(&call.tool)) {
            (Some(Backlog::Retry), Some(health)) => Waiting::ForRetries { recovering_since: health.recovering_since },
            _ => Waiting::InBacklog,
        }
    }

    /// Returns what a new call of this tool waits for that was not admitted.
    pub(crate) fn wait_reason(&self, tool: &str) -> WaitReason {
        if self.lock().windows.is_served(tool) { WaitReason::Backlog } else { WaitReason::Worker }
    }

    pub(crate) fn is_served(&self, tool: &str) -> bool {
        self.lock().windows.is_served(tool)
    }

    /// Says whether agents may be offered the tool: live workers have it, or did not long ago.
    pub(crate) fn is_offered(&self, tool: &str, seen_after: Time) -> bool {
        let known = self.lock();
        known.windows.is_served(tool) || known.last_seen.get(tool).is_some_and(|seen| *seen >= seen_after)
    }

    /// Returns the parts of the backlog that may hold something, of tools with live workers, and where each begins.
    pub(crate) fn positions(&self, at: Instant) -> Vec<Position> {
        let Known { positions, windows, .. } = &mut *self.lock();
        positions.read(|tool| windows.is_served(tool), at)
    }

    /// Takes note of what waits, of what was asked for at that moment.
    pub(crate) fn looked(&self, asked: &[Position], waiting: &[Position], at: Instant) {
        self.lock().positions.looked(asked, waiting, at);
    }

    /// Takes note of what waits; returns the room that there is for it.
    pub(crate) fn round(&self, waiting: &[Position]) -> Round {
        let mut known = self.lock();
        let parts: Vec<BacklogPart> = waiting.iter().map(|one| one.part.clone()).collect();
        let round = known.windows.round(&parts);
        if known.is_paused() { Round::default() } else { round }
    }

    /// Returns what to take from the backlog next; it is the part's turn then.
    pub(crate) fn next_order(&self, round: &mut Round) -> Option<Order> {
        let order = round.next(MAX_FED)?;
        self.lock().windows.had_turn(&order.part);
        Some(order)
    }

    pub(crate) fn expect_several_tenants(&self, several: bool) {
        self.lock().windows.expect_several_tenants(several);
    }

    /// Takes note of the end of a round, and of how long it took.
    pub(crate) fn ended(&self, round: &Round, feeding: Duration) {
        self.lock().windows.fed(round, feeding);
    }

    /// Returns the recovery of a tool whose outage has ended, for its retries.
    pub(crate) fn recovery(&self, part: &BacklogPart) -> Option<Recovery> {
        let known = self.lock();
        let since = known.health.get(&part.tool).filter(|_| part.backlog.is_retry())?.recovering_since?;
        Some(Recovery { since, least_ms: EXTENSION_MS })
    }

    /// Takes note of calls that were taken from the backlog, and of the position of the last one.
    pub(crate) fn fed(&self, order: &Order, jobs: u64, until: Option<Time>) {
        let mut known = self.lock();
        known.windows.publish(&order.consumer, &order.part.tool, &order.part.tenant, jobs);
        if let Some(until) = until {
            known.positions.taken(&order.part, until);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

impl Known {
    fn is_paused(&self) -> bool {
        self.paused_until.is_some_and(|until| Instant::now() < until)
    }

    /// Says whether workers have claimed jobs of its tool that were published long after that of this call. Those of
    /// other tools say nothing: they may run while workers give this one back.
    fn was_passed(&self, consumer: &str, call: &CallRecord) -> bool {
        let latest = self.claimed.get(consumer).and_then(|of_consumer| of_consumer.get(&call.tool));
        latest.zip(call.published_at).is_some_and(|(latest, published_at)| {
            // The database's clock may have jumped back since.
            published_at + OUT_OF_ORDER < *latest && *latest <= call.read_at
        })
    }

    /// Says whether a job of this tool likely waits for a worker: some are on the stream, and no worker asks for them,
    /// or workers gave some back, because the tool has reached a limit of its own. Models have one, programs that share
    /// their pool with other tools, and large arguments.
    fn is_queued(&self, consumer: &str, tool: &str) -> bool {
        let waits = self.queued.contains(consumer) || self.returned.contains(consumer);
        waits && self.windows.seen(consumer, tool) > 0
    }
}

#[cfg(test)]
mod tests;
