//! A tenant's feed: the calls and tasks that end, and the steps of tasks.
//!
//! What ends is read from the record, once a second for each tenant with an open feed, and told to all its streams: accepting
//! and ending calls costs nothing for it. Ends become visible in another order than that of their times, so what ended lately is
//! read again until it is certain that nothing earlier can appear ([`redial_store::stats::Fence`]); that time is the id of an
//! event. A stream that goes on after an id gets all that ended since: some of it twice, and misses nothing.

use std::{collections::BTreeSet, time::Duration};

use axum::{http::HeaderMap, response::Response};
use chrono::TimeDelta;
use redial_proto::{CallId, Code, TaskId, Tenant};
use redial_store::{
    StoreError, Time,
    audit::{EndedLine, EndedPosition},
    stats::Fence,
};
use schemars::JsonSchema;
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
/// Ends that are read at once.
const PAGE: u32 = 500;
/// Each look reads again what ended so short a time before the last end that was seen: most ends become visible within it.
const OVERLAP: TimeDelta = TimeDelta::seconds(1);
/// After so many looks everything since the fence is read again.
const LOOKS: u32 = 10;
/// A statement takes the time of an end when it begins; Postgres ends a dispatcher's statement after 8 s.
const STATEMENT: TimeDelta = TimeDelta::seconds(15);
/// Until it is known which transactions are over.
const MARGIN: TimeDelta = TimeDelta::minutes(1);
/// Ends that are remembered as told. If more are told while the fence stays where it is, some are told twice.
const REMEMBERED: usize = 200_000;

/// A call or a task that ended.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct EndedItem {
    /// The call; absent for a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<CallId>,
    /// The task, or the one that asked for the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskId>,
    /// The tool of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The agent of a task, unless it was given with the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// How it ended.
    state: String,
    /// The error class of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    /// Why a task ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// Attempts of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    /// When it ended, by the database's clock.
    at: Time,
}

impl From<EndedLine> for EndedItem {
    fn from(line: EndedLine) -> Self {
        let EndedLine { id, is_task, name, state, class, attempts, task, at } = line;
        let attempts = attempts.and_then(|attempts| u32::try_from(attempts).ok());
        if is_task {
            let task = Some(TaskId(id));
            return Self { call: None, task, tool: None, agent: name, state, class: None, code: class, attempts, at };
        }
        let (call, task) = (Some(CallId(id)), task.map(TaskId));
        Self { call, task, tool: name, agent: None, state, class, code: None, attempts, at }
    }
}

impl EndedItem {
    const fn event(&self) -> &'static str {
        if self.call.is_some() { "call" } else { "task" }
    }
}

/// An id as it is written.
pub(crate) fn time_id(at: Time) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

/// The feed of the tenant, after the id that the request names.
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
    let listening = Listening { since, missed: format!("/v1/events/missed?since={}", time_id(since)) };
    page.event(Some(&time_id(since)), "listening", &listening)?;
    let replay = from.map(EndedPosition::before);
    let progress = if replay.is_some() { Progress::More } else { Progress::Waits };
    let feed = Feed { tenant: who.tenant, hints, tail, replay, next: None, id: since, gateway };
    Ok(stream::answer(feed.gateway.clone(), permit, feed, page, progress))
}

/// The first event of a feed.
#[derive(Serialize)]
struct Listening {
    /// The feed tells everything that ends from now on, and, if the request named an id, what ended since then.
    since: Time,
    /// Where to ask for what ended since.
    missed: String,
}

struct Feed {
    gateway: Shared,
    tenant: Tenant,
    tail: Tail,
    hints: broadcast::Receiver<Hint>,
    /// Where the record is read on, if the stream is behind.
    replay: Option<EndedPosition>,
    /// Taken while waiting.
    next: Option<Hint>,
    /// The last id that was sent.
    id: Time,
}

impl Source for Feed {
    async fn news(&mut self) {
        match self.hints.recv().await {
            Ok(hint) => self.next = Some(hint),
            Err(RecvError::Lagged(_)) => self.replay = Some(EndedPosition::before(self.id)),
            // The tail lives as long as there is a stream, unless the gateway stops.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }

    async fn read(&mut self, page: &mut Page) -> Result<Progress, Problem> {
        if let Some(after) = self.replay {
            return self.read_on(after, page).await;
        }
        let mut taken = 0;
        while taken < PAGE {
            let hint = match self.next.take().map_or_else(|| self.hints.try_recv(), Ok) {
                Ok(hint) => hint,
                Err(TryRecvError::Lagged(_)) => {
                    self.replay = Some(EndedPosition::before(self.id));
                    return Ok(Progress::More);
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(Progress::Waits),
            };
            page.raw(&hint.text);
            self.id = hint.id.unwrap_or(self.id);
            taken += 1;
        }
        Ok(Progress::More)
    }
}

impl Feed {
    async fn read_on(&mut self, after: EndedPosition, page: &mut Page) -> Result<Progress, Problem> {
        let _share = self.gateway.limits.stream_read(&self.tenant).await;
        let ended = self.gateway.store.of(&self.tenant).ended_since(after, PAGE).await?;
        let certain = self.tail.certain.borrow().unwrap_or(self.id);
        let is_last = ended.len() < PAGE as usize;
        self.replay = ended.last().map(EndedLine::position).filter(|_| !is_last);
        for line in ended {
            // Of what ended later, something may still appear.
            self.id = line.at.min(certain);
            let item = EndedItem::from(line);
            page.event(Some(&time_id(self.id)), item.event(), &item)?;
        }
        Ok(Progress::More)
    }
}

/// Reads what ends in one tenant.
struct Reader {
    gateway: Shared,
    tenant: Tenant,
    tail: Tail,
    seen: Option<Seen>,
}

/// What was read.
struct Seen {
    /// Nothing that ended before can appear any more, and all of it was told.
    certain: Time,
    /// The last end.
    last: Time,
    /// What ended since `certain` and was told.
    told: BTreeSet<EndedPosition>,
    /// The last fence that was not passed when it was compared, and a time behind the one that was passed before.
    fence: Fence,
    bound: Time,
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
        let now = self.gateway.store.fence().await?;
        let Some(seen) = &mut self.seen else {
            let certain = now.at - MARGIN;
            self.seen =
                Some(Seen { certain, last: certain, told: BTreeSet::new(), fence: now, bound: certain, looks: 0 });
            self.read(EndedPosition::before(certain), false).await?;
            self.tail.certain.send_replace(Some(certain));
            return Ok(());
        };
        seen.pass(now);
        let bound = seen.bound;
        seen.looks += 1;
        let all = seen.looks >= LOOKS;
        let from = if all { seen.certain } else { seen.certain.max(seen.last - OVERLAP) };
        self.read(EndedPosition::before(from), true).await?;
        if let (true, Some(seen)) = (all, &mut self.seen) {
            seen.looks = 0;
            seen.certain = seen.certain.max(bound);
            seen.told = seen.told.split_off(&EndedPosition::before(seen.certain));
            self.tail.certain.send_replace(Some(seen.certain));
        }
        Ok(())
    }

    /// Reads what ended after a position, and tells what was not told before.
    async fn read(&mut self, mut after: EndedPosition, is_told: bool) -> Result<(), StoreError> {
        loop {
            let ended = self.gateway.store.of(&self.tenant).ended_since(after, PAGE).await?;
            let is_last = ended.len() < PAGE as usize;
            after = ended.last().map_or(after, EndedLine::position);
            let Some(seen) = &mut self.seen else { return Ok(()) };
            seen.last = seen.last.max(after.at);
            for line in ended {
                if seen.told.insert(line.position()) && is_told {
                    tell(&self.tail, line, seen.certain);
                }
            }
            while seen.told.len() > REMEMBERED {
                seen.told.pop_first();
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

impl Seen {
    /// Takes a new fence.
    fn pass(&mut self, now: Fence) {
        if now.is_before(&self.fence) {
            // The clock was set back: what ends now has earlier times.
            let certain = self.certain.min(now.at - MARGIN);
            (self.certain, self.bound, self.last, self.fence) = (certain, certain, certain, now);
        } else if self.fence.is_passed_by(&now) {
            self.bound = self.fence.at - STATEMENT;
            self.fence = now;
        }
    }
}

fn tell(tail: &Tail, line: EndedLine, certain: Time) {
    let (item, mut page) = (EndedItem::from(line), Page::default());
    if page.event(Some(&time_id(certain)), item.event(), &item).is_ok() {
        // An error says that no stream listens.
        let _ = tail.hints.send(Hint { text: page.into_bytes(), id: Some(certain) });
    }
}
