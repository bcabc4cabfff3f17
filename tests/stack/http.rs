//! The HTTP API on real servers: a gateway, a dispatcher and a worker in this process.

mod access;
mod calls;
pub(crate) mod client;
mod console;
mod docs;
mod doors;
mod erasing;
mod events;
mod feed;
mod functions;
mod lists;
pub(crate) mod model;
mod processes;
mod record;
mod search;
mod sessions;
mod shares;
mod sse;
mod tokens;
mod typed;
mod webhooks;
