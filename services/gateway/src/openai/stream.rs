//! Streams of events.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header},
    response::Response,
};
use futures_util::{Stream, stream};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::follow::Follow;
use crate::gateway::Shared;

/// A comment is sent after so long without an event.
pub(crate) const QUIET: Duration = Duration::from_secs(15);

/// An answer that is a stream of events.
pub(crate) fn answer(events: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// What is read while a stream is written: nothing before the client has taken what was written.
struct Streaming {
    gateway: Shared,
    follow: Follow,
    /// Events up to this one are left out.
    after: Option<u64>,
    _permit: OwnedSemaphorePermit,
}

/// The events of a response after this one, until it is over. It ends early if the gateway stops; the client resumes it on
/// another one.
pub(crate) fn events(
    gateway: Shared,
    follow: Follow,
    after: Option<u64>,
    permit: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    let start = Streaming { gateway, follow, after, _permit: permit };
    stream::unfold(start, |mut streaming| async move {
        let chunk = streaming.next().await?;
        Some((Ok(chunk), streaming))
    })
}

impl Streaming {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let events = self.follow.take_events();
            let new = events.iter().filter(|event| is_after(event, self.after));
            let text: String = new.map(written).collect();
            if !text.is_empty() {
                return Some(text.into());
            }
            if self.follow.record().is_over() {
                return None;
            }
            let gateway = self.gateway.clone();
            tokio::select! {
                () = self.follow.changed() => {}
                () = tokio::time::sleep(QUIET) => return Some(Bytes::from_static(b": working\n\n")),
                () = gateway.shutdown.cancelled() => return None,
            }
            if let Err(problem) = self.follow.read().await
                && problem.again().is_none()
            {
                tracing::warn!(error = %problem.error, "Ended the stream of a response that can be read no more");
                return None;
            }
        }
    }
}

fn is_after(event: &Value, after: Option<u64>) -> bool {
    after.is_none_or(|after| event["sequence_number"].as_u64().is_some_and(|number| number > after))
}

fn written(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}
