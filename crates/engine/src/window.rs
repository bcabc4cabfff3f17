//! The short queue: which jobs are published now, and to which workers.
//!
//! NATS holds a window of unclaimed jobs for each tool of a consumer; Postgres holds the rest. The window is per tool, so
//! that a tool whose calls do not move (its model has reached its limit, each takes an hour) keeps no other tool of the
//! pool out. It is [`LEAST`] jobs, or what this dispatcher granted of the tool in two seconds when its workers were busiest:
//! then a burst of a quick tool is published at once, and no other tool waits long behind it.
//!
//! Tenants share the workers of a tool, and none waits behind the flood of another. While several tenants are active the window
//! is so short that what is published last is claimed soon (`SHARED_SPAN`); the room goes in equal parts to the tenants whose
//! calls wait, and that of a tenant to its retries and its first attempts ([`Round`]); and a new call of a tenant that got less than
//! those that wait is published before theirs.
//!
//! A consumer belongs to the workers of one pool that have the same tools. So a job is published only where every worker
//! can run it, and only while one of them lives.
//!
//! Each dispatcher has its own view: what it saw on the stream at its last check, and what it published since or what was
//! under way to the stream then. Together three dispatchers publish at most twice a window, because each uses half of the
//! room that it sees: one may fill the window by looking often, and each other one may add half a window, which it saw empty
//! before that. While what they publish is so long on its way that the others look and do not see it, it is a window for
//! each dispatcher. A dispatcher that has not looked yet uses no room.

mod depth;
mod packs;
mod round;
mod shares;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::Duration,
};

use redial_records::{Backlog, BacklogPart, LiveConsumer};

use self::{
    depth::{Depth, jobs_of},
    round::{OfTool, Room},
    shares::{Shares, Tenants},
};
pub use self::{
    packs::pack_size,
    round::{Order, Round},
};

/// The least window: so many unclaimed jobs of one tool a consumer may have.
pub const LEAST: u64 = 2_048;
pub const LARGEST: u64 = 32_768;
/// No publication takes longer, and none of a submission begins later. Room that was kept for a job that is not published
/// after all is free again after once or twice this time.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15);
/// The window holds what a tool claims in this time, in seconds.
const SPAN: f64 = 2.0;
/// While several tenants are active, the window holds what a tool claims in this time, in seconds: so long a call waits behind
/// those of others that were published before it. A dispatcher refills it three times in that time, or where it cannot, the window
/// holds what is claimed in four times the time that feeding takes: half of it is room, and half of that is a reserve.
const SHARED_SPAN: f64 = 0.08;
/// Rates follow what is observed within about this time, in seconds.
const SMOOTHING: f64 = 1.0;

/// The windows as one dispatcher knows them.
#[derive(Debug, Default)]
pub struct Windows {
    consumers: BTreeMap<String, Consumer>,
    tools: HashMap<String, Tool>,
    tenants: Tenants,
    /// How long it took to feed the queue the last time.
    feeding: Duration,
    /// Counts the turns of all tools.
    turns: u64,
    checked_at: Duration,
    forgot_at: Duration,
}

#[derive(Debug, Default)]
struct Consumer {
    pool: String,
    slots: u32,
    /// The stream was checked since it appeared. Before that, its depths are unknown.
    checked: bool,
    depths: HashMap<String, Depth>,
}

#[derive(Debug, Default)]
struct Tool {
    /// The live consumers that have it.
    consumers: Vec<String>,
    shares: Shares,
    /// Claimed since the last check.
    claimed: u64,
    /// Claims per second.
    rate: f64,
    /// Claims per second when its workers are busy: what the rate was while jobs waited for them, or the highest since.
    capacity: f64,
    /// Unclaimed jobs at the last check.
    seen: u64,
    /// The number of its last turn.
    turn: u64,
    /// Something waited for nothing but room in the last round.
    is_short_of_room: bool,
}

impl Windows {
    /// Takes note of whether several tenants are declared, whether they have submitted anything or not.
    pub fn expect_several_tenants(&mut self, several: bool) {
        self.tenants.expect_several(several);
    }

    /// Takes note of the consumers that have live workers.
    pub fn set_consumers(&mut self, live: &[LiveConsumer]) {
        let names: HashSet<&str> = live.iter().map(|one| one.name.as_str()).collect();
        self.consumers.retain(|name, _| names.contains(name.as_str()));
        for tool in self.tools.values_mut() {
            tool.consumers.clear();
        }
        for one in live {
            let consumer = self.consumers.entry(one.name.clone()).or_default();
            (consumer.pool, consumer.slots) = (one.pool.clone(), one.slots.max(1));
            consumer.depths.retain(|tool, _| one.tools.contains(tool));
            for tool in &one.tools {
                self.tools.entry(tool.clone()).or_default().consumers.push(one.name.clone());
            }
        }
        self.tools.retain(|_, tool| !tool.consumers.is_empty());
    }

    /// Takes note of what is on the stream: unclaimed jobs by consumer and tool. `began`: when the stream was asked, as
    /// the time since some fixed start.
    pub fn set_depths(&mut self, depths: &HashMap<(String, String), u64>, began: Duration) {
        let seconds = began.saturating_sub(self.checked_at).as_secs_f64().max(0.001);
        self.checked_at = began;
        let forgets = began.saturating_sub(self.forgot_at) >= FORGOTTEN_AFTER;
        if forgets {
            self.forgot_at = began;
            self.tenants.forget(began);
        }
        for (name, tool) in depths.keys() {
            if let Some(consumer) = self.consumers.get_mut(name) {
                consumer.depths.entry(tool.clone()).or_default();
            }
        }
        for (name, consumer) in &mut self.consumers {
            consumer.checked = true;
            for (tool, depth) in &mut consumer.depths {
                if forgets {
                    depth.forget();
                }
                depth.check(depths.get(&(name.clone(), tool.clone())).copied().unwrap_or(0));
            }
        }
        let weight = (seconds / SMOOTHING).min(1.0);
        let mut seen = HashMap::<&str, u64>::new();
        for ((_, tool), count) in depths.iter().filter(|((of, _), _)| self.consumers.contains_key(of)) {
            *seen.entry(tool).or_default() += count;
        }
        for (name, tool) in &mut self.tools {
            #[expect(clippy::cast_precision_loss, reason = "claims of a second are far below 2^53")]
            let rate = std::mem::take(&mut tool.claimed) as f64 / seconds;
            tool.rate += (rate - tool.rate) * weight;
            let seen_before = std::mem::replace(&mut tool.seen, seen.get(name.as_str()).copied().unwrap_or(0));
            let is_busy = seen_before > 0 && tool.seen > 0;
            tool.capacity = if is_busy { tool.rate } else { tool.rate.max(tool.capacity) };
            tool.shares.fade(weight);
        }
    }

    /// Takes note of a granted claim. True if more of the tool waits and there is room for a good part of a window by now:
    /// time for another check.
    pub fn claimed(&mut self, tool: &str) -> bool {
        let Some(entry) = self.tools.get_mut(tool) else { return false };
        entry.claimed += 1;
        if !entry.shares.someone_waits() && !entry.is_short_of_room {
            return false;
        }
        let claimed = entry.claimed;
        let windows = self.of_tool(tool).map(|(_, _, window)| window);
        claimed.is_multiple_of(windows.min().unwrap_or(LEAST).div_ceil(8))
    }

    /// Takes note of a first attempt of this tenant that waits for this tool in the backlog.
    pub fn waits(&mut self, tool: &str, tenant: &str) {
        self.note_waiting(tool, tenant, Backlog::Job);
    }

    fn note_waiting(&mut self, tool: &str, tenant: &str, backlog: Backlog) {
        self.tenants.note(tenant, self.checked_at);
        if let Some(tool) = self.tools.get_mut(tool) {
            tool.shares.wait(tenant, backlog);
        }
    }

    /// Returns where the job of a new call is published at once; `None` if the call waits: no live worker has the tool,
    /// the window is full, or others wait before it.
    pub fn admit(&mut self, tool: &str, tenant: &str) -> Option<String> {
        self.tenants.note(tenant, self.checked_at);
        let Tool { shares, capacity, .. } = self.tools.get(tool)?;
        let (others_wait, goes_ahead) = (shares.someone_waits(), shares.goes_ahead(tenant));
        // There may be many that go ahead of others: together they at most double the full window.
        let of_those_ahead = 2 * window(*capacity);
        let has_room = |consumer: &Consumer, window| {
            if goes_ahead {
                Self::room(consumer, tool, of_those_ahead) > 0
            } else {
                !others_wait && Self::room(consumer, tool, window) > 0
            }
        };
        let with_room = self.of_tool(tool).filter(|(_, consumer, window)| has_room(consumer, *window));
        let Some((name, ..)) = with_room.min_by_key(|(_, consumer, _)| consumer.load(tool)) else {
            self.waits(tool, tenant);
            return None;
        };
        let name = name.to_owned();
        self.publish(&name, tool, tenant, 1);
        Some(name)
    }

    /// True if less than half of the room that the last check left is left now: time for another check.
    pub fn is_low(&self, tool: &str) -> bool {
        let is_low = |(_, consumer, window): (&str, &Consumer, u64)| {
            let depth = consumer.depths.get(tool).copied().unwrap_or_default();
            Self::room(consumer, tool, window).saturating_mul(2) <= depth.usable(window)
        };
        self.is_served(tool) && self.of_tool(tool).all(is_low)
    }

    /// Takes note of what waits for which tools, of which only those with live workers matter; returns what there is to divide among
    /// it: the room of the tools of which something waits.
    pub fn round(&mut self, waiting: &[BacklogPart]) -> Round {
        self.tools.values_mut().for_each(|tool| tool.shares.nobody_waits());
        for part in waiting {
            self.note_waiting(&part.tool, &part.tenant, part.backlog);
        }
        for tool in self.tools.values_mut() {
            tool.shares.forget_turns();
            tool.is_short_of_room = false;
        }
        let tools: BTreeSet<&str> = waiting.iter().map(|part| part.tool.as_str()).collect();
        let mut tools: Vec<&str> = tools.into_iter().collect();
        tools.sort_by_key(|tool| self.tools.get(*tool).map_or(0, |tool| tool.turn));
        Round { tools: tools.into_iter().filter_map(|tool| self.of_round(tool)).collect() }
    }

    fn of_round(&mut self, tool: &str) -> Option<OfTool> {
        let room = |(name, consumer, window): (&str, &Consumer, u64)| {
            let left = Self::room(consumer, tool, window);
            let room = Room { consumer: name.to_owned(), pool: consumer.pool.clone(), left };
            is_worth_it(left, window).then_some(room)
        };
        let rooms: Vec<Room> = self.of_tool(tool).filter_map(room).collect();
        let entry = self.tools.get_mut(tool)?;
        entry.is_short_of_room = rooms.is_empty();
        let (tool, tenants) = (tool.to_owned(), entry.shares.in_turn());
        (!rooms.is_empty()).then_some(OfTool { tool, rooms, tokens: 0, tenants })
    }

    /// Ends the turn of a part: the next ones are those of others.
    pub fn had_turn(&mut self, part: &BacklogPart) {
        self.turns += 1;
        if let Some(tool) = self.tools.get_mut(&part.tool) {
            tool.turn = self.turns;
            tool.shares.has_turn(part.backlog, &part.tenant, self.turns);
        }
    }

    /// Takes note of what a round leaves, and of how long it took to feed the queue.
    pub fn fed(&mut self, round: &Round, feeding: Duration) {
        self.feeding = feeding;
        for one in &round.tools {
            if let Some(tool) = self.tools.get_mut(&one.tool) {
                tool.is_short_of_room = one.is_short_of_room();
            }
        }
    }

    /// Takes note of jobs of a tenant that are about to be published.
    pub fn publish(&mut self, consumer: &str, tool: &str, tenant: &str, count: u64) {
        if let Some(tool) = self.tools.get_mut(tool) {
            tool.shares.published(tenant, count);
        }
        let Some(consumer) = self.consumers.get_mut(consumer) else { return };
        if let Some(depth) = consumer.depths.get_mut(tool) {
            return depth.publish(count);
        }
        consumer.depths.entry(tool.to_owned()).or_default().publish(count);
    }

    /// Takes note of one of them that is on the stream, or will not be.
    pub fn arrived(&mut self, consumer: &str, tool: &str) {
        if let Some(depth) = self.consumers.get_mut(consumer).and_then(|consumer| consumer.depths.get_mut(tool)) {
            depth.arrive();
        }
    }

    /// True if something of the tool would be published now.
    pub fn has_room(&self, tool: &str) -> bool {
        self.of_tool(tool).any(|(_, consumer, window)| is_worth_it(Self::room(consumer, tool, window), window))
    }

    /// True if a live worker has the tool.
    pub fn is_served(&self, tool: &str) -> bool {
        self.tools.contains_key(tool)
    }

    /// True if the live workers of a consumer have the tool.
    pub fn has(&self, consumer: &str, tool: &str) -> bool {
        self.tools.get(tool).is_some_and(|tool| tool.consumers.iter().any(|name| name == consumer))
    }

    /// Counts the unclaimed jobs of a tool that a live consumer had at the last check.
    pub fn seen(&self, consumer: &str, tool: &str) -> u64 {
        self.consumers.get(consumer).and_then(|consumer| consumer.depths.get(tool)).map_or(0, |depth| depth.seen)
    }

    /// Returns the tools that live workers have.
    pub fn served(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// Returns the live consumers that have a tool, with its window there.
    fn of_tool(&self, tool: &str) -> impl Iterator<Item = (&str, &Consumer, u64)> {
        let span = self.tenants.are_several().then(|| SHARED_SPAN.max(self.feeding.as_secs_f64() * 4.0));
        self.tools.get(tool).into_iter().flat_map(move |entry| {
            let named = entry.consumers.iter().filter_map(|name| Some((name.as_str(), self.consumers.get(name)?)));
            named.map(move |(name, consumer)| {
                let window = window(entry.capacity);
                let shared = span.map(|span| shared(entry.capacity, span, consumer.slots));
                (name, consumer, shared.map_or(window, |shared| shared.min(window)))
            })
        })
    }

    /// Counts the jobs of a tool that this dispatcher may publish now.
    fn room(consumer: &Consumer, tool: &str, window: u64) -> u64 {
        if !consumer.checked {
            return 0;
        }
        let depth = consumer.depths.get(tool).copied().unwrap_or_default();
        depth.usable(window).saturating_sub(depth.published)
    }
}

impl Consumer {
    /// Counts the unclaimed jobs of a tool per worker's slot, in thousandths.
    fn load(&self, tool: &str) -> u64 {
        let depth = self.depths.get(tool).copied().unwrap_or_default();
        depth.all() * 1_000 / u64::from(self.slots)
    }
}

/// True if there is enough room. Room for a few jobs is left until there is more: a statement for each would cost more
/// than they do.
fn is_worth_it(room: u64, window: u64) -> bool {
    room > 0 && room >= window / 16
}

fn window(capacity: f64) -> u64 {
    jobs_of(capacity, SPAN).clamp(LEAST, LARGEST)
}

/// Returns the window while several tenants are active: at least so much that a quarter of the slots can be filled at
/// once.
fn shared(capacity: f64, span: f64, slots: u32) -> u64 {
    jobs_of(capacity, span).max(u64::from(slots / 4)).max(1)
}
