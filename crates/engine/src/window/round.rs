//! Who gets the room of a tool's windows in one round of the feeder.
//!
//! There is one order over tenants and kinds, and no phase for either kind: the room of a tool is divided by tenant, then
//! between a tenant's retries and first attempts, and what one does not use the others get. Who has waited longest for a
//! turn comes first: among tools, among the tenants of a tool, and among the two kinds of a tenant. Retries also share the
//! tool's tokens.

use std::collections::VecDeque;

use redial_records::{Backlog, BacklogPart};

/// Jobs that a feeder should publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Whose calls of which tool.
    pub part: BacklogPart,
    pub consumer: String,
    pub pool: String,
    /// How many at most.
    pub most: u32,
}

/// The room of one round, and who waits for it.
#[derive(Debug, Default)]
pub struct Round {
    /// Those that have waited longest for a turn come first, here and in the other lists.
    pub(super) tools: VecDeque<OfTool>,
}

/// A tool that has room, and something of it waits.
#[derive(Debug)]
pub(super) struct OfTool {
    pub(super) tool: String,
    pub(super) rooms: Vec<Room>,
    /// For retries.
    pub(super) tokens: u64,
    pub(super) tenants: VecDeque<OfTenant>,
}

/// What one consumer has room for.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) consumer: String,
    pub(super) pool: String,
    pub(super) left: u64,
}

#[derive(Debug)]
pub(super) struct OfTenant {
    pub(super) tenant: String,
    /// What it got in this round.
    pub(super) got: u64,
    pub(super) kinds: VecDeque<OfKind>,
}

/// Calls of one part of the backlog, which may hold more.
#[derive(Debug)]
pub(super) struct OfKind {
    pub(super) backlog: Backlog,
    /// When it last had a turn.
    pub(super) turn: u64,
    pub(super) got: u64,
}

impl Round {
    /// Returns how many retries of a tool there is room for, if any wait.
    pub fn room_for_retries(&self, tool: &str) -> u32 {
        let found = self.tools.iter().find(|one| one.tool == tool && one.retries().next().is_some());
        u32::try_from(found.map_or(0, OfTool::left)).unwrap_or(u32::MAX)
    }

    /// Allows so many retries of a tool in this round; without this, none. If they are fewer than the tenants with
    /// retries, those tenants have them whose retries have waited longest for a turn.
    pub fn allow(&mut self, tool: &str, tokens: u32) {
        let Some(one) = self.tools.iter_mut().find(|one| one.tool == tool) else { return };
        one.tokens = tokens.into();
        let mut turns: Vec<(u64, String)> =
            one.retries().map(|(tenant, kind)| (kind.turn, tenant.tenant.clone())).collect();
        turns.sort_unstable();
        for (_, tenant) in turns.iter().skip(usize::try_from(tokens).unwrap_or(usize::MAX)) {
            one.remove(tenant, Backlog::Retry);
        }
    }

    /// Returns what to publish next, at most so many jobs; [`Round::took`] must follow. `None` at the end of the round.
    pub fn next(&mut self, at_once: u32) -> Option<Order> {
        let (n, order) = self.tools.iter_mut().enumerate().find_map(|(n, tool)| Some((n, tool.next(at_once)?)))?;
        to_the_end(&mut self.tools, n);
        Some(order)
    }

    /// Takes note that so many calls were taken for an order. If they are fewer than it says, no more wait in that
    /// part.
    pub fn took(&mut self, order: &Order, count: u32) {
        if let Some(tool) = self.tools.iter_mut().find(|one| one.tool == order.part.tool) {
            tool.took(order, count.into());
        }
    }

    /// Returns the tokens that no retry used, by tool.
    pub fn unused_tokens(&self) -> impl Iterator<Item = (&str, u32)> {
        let unused = |one: &OfTool| u32::try_from(one.tokens).unwrap_or(u32::MAX);
        self.tools.iter().map(move |one| (one.tool.as_str(), unused(one))).filter(|(_, tokens)| *tokens > 0)
    }

    /// True if something waits for nothing but room.
    pub fn is_short_of_room(&self) -> bool {
        self.tools.iter().any(OfTool::is_short_of_room)
    }
}

impl OfTool {
    fn left(&self) -> u64 {
        self.rooms.iter().map(|room| room.left).sum()
    }

    fn retries(&self) -> impl Iterator<Item = (&OfTenant, &OfKind)> {
        let kinds = self.tenants.iter().flat_map(|tenant| tenant.kinds.iter().map(move |kind| (tenant, kind)));
        kinds.filter(|(_, kind)| kind.backlog.is_retry())
    }

    fn is_ready(&self, kind: &OfKind) -> bool {
        self.tokens > 0 || !kind.backlog.is_retry()
    }

    pub(super) fn is_short_of_room(&self) -> bool {
        self.left() == 0 && self.tenants.iter().flat_map(|tenant| &tenant.kinds).any(|kind| self.is_ready(kind))
    }

    fn next(&mut self, at_once: u32) -> Option<Order> {
        let left = self.left();
        let ready = |tenant: &&OfTenant| tenant.kinds.iter().any(|kind| self.is_ready(kind));
        let of_tenants = level(left, self.tenants.iter().filter(ready).map(|tenant| tenant.got));
        let of_retries = level(self.tokens, self.retries().map(|(_, kind)| kind.got));
        let (t, k, most) = self.tenants.iter().enumerate().find_map(|(t, tenant)| {
            let room = of_tenants.saturating_sub(tenant.got).min(left);
            let kinds = || tenant.kinds.iter().enumerate().filter(|(_, kind)| self.is_ready(kind));
            let of_kinds = level(room, kinds().map(|(_, kind)| kind.got));
            kinds().find_map(|(k, kind)| {
                let part = of_kinds.saturating_sub(kind.got).min(room).min(at_once.into());
                let tokens = of_retries.saturating_sub(kind.got).min(self.tokens);
                let most = if kind.backlog.is_retry() { part.min(tokens) } else { part };
                (most > 0).then_some((t, k, most))
            })
        })?;
        let order = self.order(t, k, most)?;
        to_the_end(&mut self.tenants.get_mut(t)?.kinds, k);
        to_the_end(&mut self.tenants, t);
        Some(order)
    }

    fn order(&self, tenant: usize, kind: usize, most: u64) -> Option<Order> {
        let tenant = self.tenants.get(tenant)?;
        let room = self.rooms.iter().max_by_key(|room| room.left)?;
        let part = BacklogPart {
            tool: self.tool.clone(),
            tenant: tenant.tenant.clone(),
            backlog: tenant.kinds.get(kind)?.backlog,
        };
        let most = u32::try_from(most.min(room.left)).unwrap_or(u32::MAX);
        Some(Order { part, consumer: room.consumer.clone(), pool: room.pool.clone(), most })
    }

    fn took(&mut self, order: &Order, count: u64) {
        if let Some(room) = self.rooms.iter_mut().find(|room| room.consumer == order.consumer) {
            room.left = room.left.saturating_sub(count);
        }
        let BacklogPart { tenant, backlog, .. } = &order.part;
        if backlog.is_retry() {
            self.tokens = self.tokens.saturating_sub(count);
        }
        if let Some(of) = self.tenants.iter_mut().find(|of| of.tenant == *tenant) {
            of.got += count;
            of.kinds.iter_mut().filter(|kind| kind.backlog == *backlog).for_each(|kind| kind.got += count);
        }
        if count < order.most.into() {
            self.remove(tenant, *backlog);
        }
    }

    fn remove(&mut self, tenant: &str, backlog: Backlog) {
        for of in self.tenants.iter_mut().filter(|of| of.tenant == tenant) {
            of.kinds.retain(|kind| kind.backlog != backlog);
        }
        self.tenants.retain(|of| !of.kinds.is_empty());
    }
}

/// Returns how much each of those has, who got so much before, once what is left is divided so that all have the same.
fn level(left: u64, got: impl Iterator<Item = u64>) -> u64 {
    let (members, sum) = got.fold((0, left), |(members, sum), got| (members + 1, sum + got));
    sum.div_ceil(std::cmp::max(members, 1))
}

fn to_the_end<T>(list: &mut VecDeque<T>, n: usize) {
    let one = list.remove(n);
    list.extend(one);
}
