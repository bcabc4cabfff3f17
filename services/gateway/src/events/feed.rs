//! A tenant's feed: the calls and tasks that end, and the steps of tasks.
//!
//! What ends is read from the record, once a second for each tenant with an open feed, and told to all its streams
//! ([`crate::fan_out`]): accepting and ending calls costs nothing for it. A stream that goes on after an id gets all that ended
//! since: some of it twice, nothing never.

use axum::{http::HeaderMap, response::Response};
use redial_proto::{Code, Tenant};
use redial_store::{
    Time,
    audit::{EndedLine, EndedPosition},
};
use serde::Serialize;
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};

use super::{
    id::{After, wrong},
    stream::{self, Progress, Source},
};
use crate::{
    fan_out::{EndedItem, Hint, LOOK, PAGE, Tail, time_id},
    gateway::Shared,
    identity::Identity,
    problem::Problem,
    sse::Page,
};

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
    // Before anything is read: what becomes visible after that is told.
    let (tail, hints) = gateway.events.feeds.listen(&gateway.store, &who.tenant, &gateway.shutdown);
    let mut certain = tail.certain.subscribe();
    let certain = tokio::select! {
        certain = certain.wait_for(Option::is_some) => certain.ok().and_then(|certain| *certain),
        () = gateway.shutdown.cancelled() => None,
        () = tokio::time::sleep(LOOK * 10) => None,
    };
    let unavailable = || Problem::new(Code::Unavailable, "the record cannot be read; try again");
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
        let _turn = self.gateway.events.reads.acquire().await;
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
