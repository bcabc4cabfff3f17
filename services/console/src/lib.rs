//! The console: pages over the HTTP API, served by the gateway.
//!
//! It is a client of the API in the same process: each page asks the API's own router, with the credentials of its request
//! (`client`), and shows what comes back. So a page shows nothing, and does nothing, that its reader could not have through the
//! API, and lists the requests that it was made of. Pages are HTML that is whole without a script; `assets/console.js` asks for the
//! same page again when an event says that it changed, and carries the differences over. `pages` has a file for each page.

#![expect(clippy::trivially_copy_pass_by_ref, clippy::ref_option, reason = "templates pass references")]
#![expect(clippy::unused_self, reason = "templates call methods")]
#![expect(clippy::format_collect, reason = "a page is made of short pieces")]

mod assets;
mod chart;
mod client;
mod console;
mod failure;
mod filter;
mod fold;
mod json;
mod page;
mod pages;
mod record;
mod show;
mod story;

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::Request,
    http::StatusCode,
    middleware::{Next, from_fn},
    response::{IntoResponse as _, Response},
};

use crate::console::Console;

/// Serves the pages, below `/console`, over this API. Whoever serves them adds what every request goes through.
pub fn router(api: Router) -> Router {
    let console = Console { api: Arc::new(api) };
    let pages = pages::router().layer(from_fn(bounded));
    pages.merge(assets::router()).layer(from_fn(within_a_minute)).with_state(console)
}

/// Parameters of an address. What a page does for each of them costs time, for which nobody has to sign in.
const PARAMETERS: usize = 60;
/// Bytes of an address.
const ADDRESS: usize = 8 * 1024;

/// Refuses addresses with so many conditions that no page was made for them.
async fn bounded(request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    if query.len() > ADDRESS || query.bytes().filter(|byte| *byte == b'&').count() >= PARAMETERS {
        let message = format!("This address is too long; allowed: {PARAMETERS} parameters, {ADDRESS} bytes.\n");
        return (StatusCode::URI_TOO_LONG, message).into_response();
    }
    next.run(request).await
}

/// Answers a page whole. A form that does not arrive must not be waited for: those of the sign-in come from anybody.
async fn within_a_minute(request: Request, next: Next) -> Response {
    let answered = tokio::time::timeout(Duration::from_mins(1), next.run(request)).await;
    answered.unwrap_or_else(|_| StatusCode::REQUEST_TIMEOUT.into_response())
}
