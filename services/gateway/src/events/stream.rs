//! A stream that is open: pulled by its reader.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::Body,
    http::header,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use redial_shares::Share;
use schemars::JsonSchema;
use tokio::time::sleep;

use crate::{gateway::Shared, problem::Problem, streams::sse::Page};

pub(crate) const MEDIA: &str = "text/event-stream";

/// An event of a stream.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what is written")]
pub(crate) struct ServerSentEvent {
    /// What happened.
    event: Option<String>,
    /// A stream goes on after it; absent if the event is not durable.
    id: Option<String>,
    /// JSON; the last of a chat completion is `[DONE]`.
    data: String,
    /// Milliseconds after which a client that lost the stream asks for it again.
    retry: Option<u32>,
}

/// A stream in which nothing happens sends a comment so often: proxies cut off connections that are silent.
const COMMENT: Duration = Duration::from_secs(15);
/// How long nothing is read after a read failed.
const PAUSE: Duration = Duration::from_secs(2);

pub(crate) trait Source: Send + 'static {
    /// Waits until there may be something to read. Can be cancelled without loss.
    fn news(&mut self) -> impl Future<Output = ()> + Send;

    /// Adds what is new, a page at most.
    fn read(&mut self, page: &mut Page) -> impl Future<Output = Result<Progress, Problem>> + Send;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Waits,
    Ended,
    /// A read failed, and is tried again.
    Failed,
}

struct Open<S> {
    gateway: Shared,
    source: S,
    first: Option<Page>,
    progress: Progress,
    _counted: Counted,
    _permit: Share,
}

/// Answers with what was read already, then what the source has.
pub(crate) fn answer<S: Source>(
    gateway: Shared,
    permit: Share,
    source: S,
    first: Page,
    progress: Progress,
) -> Response {
    let counted = Counted::new(&gateway);
    let open = Open { gateway, source, first: Some(first), progress, _counted: counted, _permit: permit };
    let headers = [
        (header::CONTENT_TYPE, MEDIA),
        (header::CACHE_CONTROL, "no-store"),
        // Nginx would hold events back.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(stream::unfold(open, next))).into_response()
}

async fn next<S: Source>(mut open: Open<S>) -> Option<(Result<Bytes, Infallible>, Open<S>)> {
    if let Some(first) = open.first.take() {
        return Some((Ok(first.into_bytes()), open));
    }
    loop {
        let page = match open.progress {
            Progress::Ended => return None,
            Progress::More => open.read().await,
            Progress::Waits => open.wait().await,
            Progress::Failed => open.pause().await,
        };
        if let Some(page) = page.filter(|page| !page.is_empty()) {
            return Some((Ok(page.into_bytes()), open));
        }
    }
}

impl<S: Source> Open<S> {
    async fn read(&mut self) -> Option<Page> {
        let mut page = Page::default();
        match self.source.read(&mut page).await {
            Ok(progress) => self.progress = progress,
            Err(problem) if problem.again().is_some() => {
                // What the page holds has been counted as sent, if anything.
                self.progress = Progress::Failed;
            }
            // It was erased, or is a bug that is logged: who connects again is told.
            Err(_) => self.progress = Progress::Ended,
        }
        Some(page)
    }

    async fn wait(&mut self) -> Option<Page> {
        tokio::select! {
            () = self.source.news() => {
                self.progress = Progress::More;
                None
            }
            () = sleep(COMMENT) => Some(Page::comment("")),
            () = self.gateway.shutdown.cancelled() => Some(self.drain()),
        }
    }

    async fn pause(&mut self) -> Option<Page> {
        tokio::select! {
            () = sleep(PAUSE) => {
                self.progress = Progress::More;
                Some(Page::comment("the record cannot be read; trying again"))
            }
            () = self.gateway.shutdown.cancelled() => Some(self.drain()),
        }
    }

    fn drain(&mut self) -> Page {
        self.progress = Progress::Ended;
        Page::comment("this gateway stops; connect again")
    }
}

struct Counted(Shared);

impl Counted {
    fn new(gateway: &Shared) -> Self {
        gateway.stats.streams.inc();
        Self(gateway.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.stats.streams.dec();
    }
}
