//! The HTTP API on real servers: a gateway, a dispatcher and a worker in this process.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking, too")]

#[path = "http/access.rs"]
mod access;
#[path = "http/calls.rs"]
mod calls;
#[path = "http/client.rs"]
mod client;
#[path = "http/console.rs"]
mod console;
#[path = "http/crowds.rs"]
mod crowds;
#[path = "http/docs.rs"]
mod docs;
#[path = "http/doors.rs"]
mod doors;
#[path = "http/events.rs"]
mod events;
#[path = "http/feed.rs"]
mod feed;
#[path = "http/functions.rs"]
mod functions;
#[path = "http/large.rs"]
mod large;
#[path = "http/lists.rs"]
mod lists;
#[path = "http/processes.rs"]
mod processes;
#[path = "http/record.rs"]
mod record;
#[path = "http/search.rs"]
mod search;
#[path = "http/sessions.rs"]
mod sessions;
#[path = "http/sse.rs"]
mod sse;
#[path = "http/tasks.rs"]
mod tasks;
#[path = "http/tokens.rs"]
mod tokens;
#[path = "http/webhooks.rs"]
mod webhooks;
