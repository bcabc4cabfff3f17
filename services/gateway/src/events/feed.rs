//! A tenant's feed: the calls and tasks that end, and the steps of tasks.
//!
//! What ends is read from the record, once a second for each tenant with an open feed, and told to all its streams: accepting
//! and ending calls costs nothing for it. Ends become visible in another order than that of their times, so what ended lately is
//! read again, for longer than a transaction of a dispatcher can take, and what was told of it is remembered. What ended before is not
//! read any more; that time is the id of an event. Within a stream nothing is told twice; where something may not have been told, it
//! says `missed`. A stream that goes on after an id gets all that ended since, which the client has some of.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use axum::{http::HeaderMap, response::Response};
use chrono::TimeDelta;
use redial_api::EndedItem;
use redial_proto::{Code, Tenant};
use redial_store::{StoreError, Time, audit::EndedPosition};
use serde::Serialize;
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};

use super::{
    id::{After, wrong},
    stream::{self, Progress, Source},
};
use crate::{
    gateway::Shared,
    identity::Identity,
    problem::Problem,
    streams::{
        sse::Page,
        tails::{Hint, Tail},
    },
};

/// How often the record is read.
const LOOK: Duration = Duration::from_secs(1);
const PAGE: u32 = 500;
/// Each look reads again what ended so short a time before the last end that was seen: most ends become visible within it.
const OVERLAP: TimeDelta = TimeDelta::seconds(1);
/// After so many looks everything is read again that may have become visible late.
const LOOKS: u32 = 10;
/// An end becomes visible so long after its time at most, compared with the last one that is visible: a dispatcher gives a transaction
/// up after 10 s, and Postgres ends one of its statements after 8 s. Commits wait for a standby that is away, but then none gets through.
const LATE: TimeDelta = TimeDelta::seconds(30);
/// Ends that are remembered as told: more than one Postgres writes in that time (measured: 16,000 a second).
const REMEMBERED: usize = 500_000;

/// Names the event about an end.
const fn event(item: &EndedItem) -> &'static str {
    if item.call.is_some() { "call" } else { "task" }
}

pub(crate) fn time_id(at: Time) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

/// Streams the feed of the tenant, after the id that the request names.
pub(crate) async fn follow_feed(
    gateway: Shared,
    who: Identity,
    after: &After,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let permit = who.limits.stream()?;
    let allowed = "the id of an event of a feed: a time, as 2026-11-24T17:00:00.000000Z";
    let from = after.id(headers).map(|id| id.parse::<Time>().map_err(|_| wrong(id, allowed))).transpose()?;
    Problem::check_times(&[("after", from)])?;
    // Before anything is read: what becomes visible after that is told.
    let (tail, hints, is_new) = gateway.streams.tails.listen(&who.tenant);
    if is_new {
        let reader = Reader { gateway: gateway.clone(), tenant: who.tenant.clone(), tail: tail.clone(), seen: None };
        // Without its reader all feeds of the tenant would be silent: a panic stops the gateway.
        gateway.loops.spawn("read what ended", reader.run());
    }
    let mut certain = tail.certain.subscribe();
    let certain = tokio::select! {
        certain = certain.wait_for(Option::is_some) => certain.ok().and_then(|certain| *certain),
        () = gateway.wait_is_over(&who) => None,
        () = tokio::time::sleep(LOOK * 10) => None,
    };
    let unavailable = || Problem::new(Code::Unavailable, "the record cannot be read; try again");
    // The database's clock may have been set back since: what ended meanwhile has earlier times than the id.
    let from = from.map(|from| certain.map_or(from, |certain| from.min(certain)));
    let since = from.or(certain).ok_or_else(unavailable)?;
    let mut page = Page::first();
    page.event(Some(&time_id(since)), "listening", &Since::new(since))?;
    let replay = from.map(EndedPosition::before);
    let progress = if replay.is_some() { Progress::More } else { Progress::Waits };
    let (replayed, held) = (Replayed::since(certain.unwrap_or(since)), Vec::new());
    let feed = Feed { tenant: who.tenant, hints, tail, replay, replayed, held, next: None, id: since, gateway };
    Ok(stream::answer(feed.gateway.clone(), permit, feed, page, progress))
}

/// What `listening`, the first event of a feed, and `missed` say.
#[derive(Serialize)]
struct Since {
    /// Of the first event: the feed tells everything that ends from now on, and, if the request named an id, what ended since then. Of
    /// others: something may have ended since then that was not told.
    since: Time,
    /// Where to ask for what ended since.
    missed: String,
}

impl Since {
    fn new(since: Time) -> Self {
        Self { since, missed: format!("/v1/events/missed?since={}", time_id(since)) }
    }
}

struct Feed {
    gateway: Shared,
    tenant: Tenant,
    tail: Tail,
    hints: broadcast::Receiver<Hint>,
    /// Where the record is read on, if the request named an id.
    replay: Option<EndedPosition>,
    replayed: Replayed,
    /// What is told once the record is read: its id is later than those of what is read.
    held: Vec<Hint>,
    /// Taken while waiting.
    next: Option<Hint>,
    /// The last id that was sent.
    id: Time,
}

/// What was read from the record and may be told by a hint, too.
struct Replayed {
    /// No hint tells of what ended before.
    since: Time,
    ends: BTreeSet<EndedPosition>,
}

impl Replayed {
    const fn since(since: Time) -> Self {
        Self { since, ends: BTreeSet::new() }
    }

    /// Adds what was read; forgets what ended before `certain`: no later hint tells of that.
    fn add(&mut self, read: impl Iterator<Item = EndedPosition>, certain: Time) {
        self.forget(certain);
        self.ends.extend(read.filter(|position| position.at >= self.since));
    }

    fn forget(&mut self, before: Time) {
        self.since = self.since.max(before);
        self.ends = self.ends.split_off(&EndedPosition::before(self.since));
    }

    fn contains(&self, position: EndedPosition) -> bool {
        self.ends.contains(&position)
    }
}

impl Source for Feed {
    async fn news(&mut self) {
        match self.hints.recv().await {
            Ok(hint) => self.next = Some(hint),
            // The next read says so.
            Err(RecvError::Lagged(_)) => {}
            // The tail lives as long as there is a stream, unless the gateway stops.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }

    async fn read(&mut self, page: &mut Page) -> Result<Progress, Problem> {
        if let Some(after) = self.replay {
            return self.read_on(after, page).await;
        }
        for hint in std::mem::take(&mut self.held) {
            self.tell(&hint, page);
        }
        for _ in 0..PAGE {
            match self.next.take().map_or_else(|| self.hints.try_recv(), Ok) {
                Ok(hint) => self.tell(&hint, page),
                Err(TryRecvError::Lagged(_)) => page.event(Some(&time_id(self.id)), "missed", &Since::new(self.id))?,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(Progress::Waits),
            }
        }
        Ok(Progress::More)
    }
}

impl Feed {
    async fn read_on(&mut self, after: EndedPosition, page: &mut Page) -> Result<Progress, Problem> {
        let certain = self.tail.certain.borrow().unwrap_or(self.id);
        // What is told meanwhile is read from the record later, was read already, or became visible late.
        loop {
            match self.next.take().map_or_else(|| self.hints.try_recv(), Ok) {
                Ok(hint) => match hint.position {
                    None if hint.id.is_none() => page.raw(&hint.text),
                    Some(position) if position > after || self.replayed.contains(position) => {}
                    _ => self.held.push(hint),
                },
                Err(TryRecvError::Lagged(_)) => page.event(Some(&time_id(self.id)), "missed", &Since::new(self.id))?,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        let _share = self.gateway.limits.stream_read(&self.tenant).await;
        let ended = self.gateway.store.of(&self.tenant).ended_since(after, PAGE).await?;
        let is_last = ended.len() < PAGE as usize;
        self.replay = ended.last().map(EndedPosition::of).filter(|_| !is_last);
        self.replayed.add(ended.iter().map(EndedPosition::of), certain);
        for line in ended {
            // Of what ended later, something may still appear.
            self.id = line.at.min(certain);
            page.event(Some(&time_id(self.id)), event(&line), &line)?;
        }
        Ok(Progress::More)
    }

    /// Tells a hint, unless what it tells of was read from the record.
    fn tell(&mut self, hint: &Hint, page: &mut Page) {
        let is_told = hint.position.is_some_and(|position| self.replayed.contains(position));
        if let Some(id) = hint.id {
            self.id = id;
            self.replayed.forget(id);
        }
        if !is_told {
            page.raw(&hint.text);
        }
    }
}

struct Reader {
    gateway: Shared,
    tenant: Tenant,
    tail: Tail,
    seen: Option<Seen>,
}

struct Seen {
    /// The database's clock at the last look, and when that was.
    now: Time,
    looked: Instant,
    /// What ended before was told, and is not read any more.
    certain: Time,
    last: Time,
    /// What ended since `certain` and was told.
    told: BTreeSet<EndedPosition>,
    looks: u32,
}

impl Reader {
    async fn run(mut self) {
        loop {
            match self.look().await {
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(%error, tenant = %self.tenant, "Failed to read what ended, for feeds; trying again");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = self.gateway.shutdown.cancelled() => return,
            }
            if self.gateway.streams.tails.forget_unused(&self.tenant) {
                return;
            }
        }
    }

    async fn look(&mut self) -> Result<(), StoreError> {
        let (now, looked) = (self.gateway.store.now().await?, Instant::now());
        let mut seen = match self.seen.take() {
            Some(seen) if seen.now <= now => seen,
            before => return self.begin(now, before).await,
        };
        let all = seen.looks + 1 >= LOOKS;
        let from = if all { seen.certain } else { seen.certain.max(seen.last.min(now) - OVERLAP) };
        let read = self.read(&mut seen, from, true).await;
        if read.is_ok() {
            (seen.now, seen.looked, seen.looks) = (now, looked, if all { 0 } else { seen.looks + 1 });
            if all {
                seen.forget(seen.last.min(now) - LATE);
                self.tail.certain.send_replace(Some(seen.certain));
            }
        }
        self.seen = Some(seen);
        read
    }

    /// Remembers what ended lately as told. If the clock was set back, what ended meanwhile was not.
    async fn begin(&mut self, now: Time, before: Option<Seen>) -> Result<(), StoreError> {
        let (certain, looked) = (now - LATE, Instant::now());
        let mut seen = Seen { now, looked, certain, last: certain, told: BTreeSet::new(), looks: 0 };
        if let Err(error) = self.read(&mut seen, certain, false).await {
            self.seen = before;
            return Err(error);
        }
        self.tail.certain.send_replace(Some(seen.certain));
        if let Some(before) = before {
            let elapsed = TimeDelta::from_std(before.looked.elapsed()).unwrap_or_default();
            self.tell_missed(certain - elapsed, seen.certain);
        }
        self.seen = Some(seen);
        Ok(())
    }

    /// Reads what ended since a time, and tells what was not told before.
    async fn read(&self, seen: &mut Seen, from: Time, is_told: bool) -> Result<(), StoreError> {
        let (mut after, certain) = (EndedPosition::before(from), seen.certain);
        loop {
            let ended = self.gateway.store.of(&self.tenant).ended_since(after, PAGE).await?;
            let is_last = ended.len() < PAGE as usize;
            after = ended.last().map_or(after, EndedPosition::of);
            seen.last = seen.last.max(after.at);
            for line in ended {
                if seen.is_new(EndedPosition::of(&line)) && is_told {
                    self.tell(&line, certain);
                }
            }
            if is_last {
                break;
            }
        }
        // More ended than is remembered: what becomes visible of that time is not told.
        if seen.certain > certain && is_told {
            self.tell_missed(certain, seen.certain);
        }
        Ok(())
    }

    fn tell(&self, item: &EndedItem, certain: Time) {
        let (position, mut page) = (Some(EndedPosition::of(item)), Page::default());
        if page.event(Some(&time_id(certain)), event(item), item).is_ok() {
            // An error says that no stream listens.
            let _ = self.tail.hints.send(Hint { text: page.into_bytes(), id: Some(certain), position });
        }
    }

    /// Says that something may have ended since a time that is not told.
    fn tell_missed(&self, since: Time, certain: Time) {
        let mut page = Page::default();
        if page.event(Some(&time_id(certain)), "missed", &Since::new(since)).is_ok() {
            let _ = self.tail.hints.send(Hint { text: page.into_bytes(), id: Some(certain), position: None });
        }
    }
}

impl Seen {
    /// Remembers an end as told; false if it may have been told before.
    fn is_new(&mut self, position: EndedPosition) -> bool {
        let is_new = position.at >= self.certain && self.told.insert(position);
        if let Some(first) = self.told.first().filter(|_| self.told.len() > REMEMBERED) {
            self.forget(first.at + TimeDelta::microseconds(1));
        }
        is_new
    }

    /// Stops reading what ended before a time.
    fn forget(&mut self, before: Time) {
        self.certain = self.certain.max(before);
        self.told = self.told.split_off(&EndedPosition::before(self.certain));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_end_is_told_twice_however_many_there_are() {
        let now = Time::UNIX_EPOCH + TimeDelta::days(1);
        let (told, looked) = (BTreeSet::new(), Instant::now());
        let mut seen = Seen { now, looked, certain: now - LATE, last: now, told, looks: 0 };
        let more = REMEMBERED + REMEMBERED / 10;
        // Four at a time, as the calls of a batch.
        let ends = (0..i64::try_from(more).unwrap()).map(|n| EndedPosition {
            at: now + TimeDelta::microseconds(n / 4),
            id: uuid::Uuid::from_u128(n.unsigned_abs().into()),
        });
        assert_eq!(ends.clone().filter(|end| seen.is_new(*end)).count(), more);
        assert!(seen.told.len() <= REMEMBERED && seen.certain > now, "it has forgotten some");
        assert_eq!(ends.filter(|end| seen.is_new(*end)).count(), 0);
        // What becomes visible late is told as long as it is known whether it was.
        let late = |at| EndedPosition { at, id: uuid::Uuid::from_u128(u128::MAX) };
        assert!(seen.is_new(late(seen.certain)) && !seen.is_new(late(now)));
    }

    /// One that catches up slowly reads what ends meanwhile, too.
    #[test]
    fn a_feed_that_catches_up_remembers_only_what_a_hint_may_tell() {
        let second = |n: i64| Time::UNIX_EPOCH + TimeDelta::seconds(n);
        let end = |n: i64| EndedPosition { at: second(n), id: uuid::Uuid::from_u128(n.unsigned_abs().into()) };
        let mut replayed = Replayed::since(second(1_000));
        replayed.add((0..1_000).map(end), second(1_000));
        assert!(replayed.ends.is_empty(), "it had ended before the feed began");
        for page in 1..100 {
            // It is a minute behind what is read for all feeds, which is certain but for the last 30 s.
            let (from, certain) = (page * 1_000, page * 1_000 + 60 - 30);
            replayed.add((from..from + 100).map(end), second(certain));
            assert_eq!(replayed.ends.len(), 70, "of page {page}");
            assert!(replayed.contains(end(from + 50)) && !replayed.contains(end(from + 29)));
        }
        replayed.forget(second(99_099));
        assert_eq!(replayed.ends.len(), 1);
    }
}
