//! The events of a response as a stream.

use axum::response::Response;
use redial_shares::Share;
use serde_json::Value;

use super::follow::Follow;
use crate::{
    events::{self, Progress, Source},
    gateway::Shared,
    problem::Problem,
    streams::sse::Page,
};

struct ResponseEvents {
    follow: Follow,
    /// Events up to this one are left out.
    after: Option<u64>,
}

/// Streams a response's events after this one until it is over; if the gateway stops, another one can resume it.
pub(crate) fn answer(gateway: Shared, follow: Follow, after: Option<u64>, permit: Share) -> Response {
    let mut events = ResponseEvents { follow, after };
    // Not as other streams begin: the official client takes `retry` for an event.
    let mut page = Page::comment("");
    let progress = events.show(&mut page);
    events::answer(gateway, permit, events, page, progress)
}

impl Source for ResponseEvents {
    async fn news(&mut self) {
        self.follow.changed().await;
    }

    async fn read(&mut self, page: &mut Page) -> Result<Progress, Problem> {
        self.follow.read_page().await?;
        Ok(self.show(page))
    }
}

impl ResponseEvents {
    fn show(&mut self, page: &mut Page) -> Progress {
        for event in self.follow.take_events().iter().filter(|event| is_after(event, self.after)) {
            page.raw(written(event).as_bytes());
        }
        self.follow.progress()
    }
}

fn is_after(event: &Value, after: Option<u64>) -> bool {
    after.is_none_or(|after| event["sequence_number"].as_u64().is_some_and(|number| number > after))
}

fn written(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}
