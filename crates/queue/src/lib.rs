//! Redial's streams and subjects on NATS; the only crate that speaks NATS.
//!
//! NATS carries hints, Postgres is the truth: everything here may be lost, doubled or late without harm, and everything
//! here heals by itself after a killed server, a wiped store or a cut connection.
//!
//! | file | does |
//! | --- | --- |
//! | `connect.rs` | connects, reconnects, counts what the client dropped |
//! | `streams.rs` | creates streams and consumers, reads them back |
//! | `publish.rs` | puts messages on streams and subjects |
//! | `pull.rs` | takes messages from a consumer, never more than asked for |
//! | `deliver.rs` | what was taken, and how it is answered |
//! | `request.rs`, `serve.rs`, `subscribe.rs` | core NATS: ask, answer, listen |
//!
//! A worker needs these NATS permissions. Publish: `redial.ctl.>`, `redial.results`, `redial.events.tasks.*.delta` (if it
//! asks models), `$JS.API.CONSUMER.MSG.NEXT.JOBS.>`, `$JS.API.CONSUMER.INFO.JOBS.>`, `$JS.ACK.JOBS.>`,
//! `$JS.ACK.*.*.JOBS.>`. Subscribe: `redial.worker.>` and its inboxes (`_INBOX.>`, or [`QueueConfig::inbox_prefix`]).

mod api;
mod backoff;
mod config;
mod connect;
mod deliver;
mod error;
mod publish;
mod pull;
mod request;
mod serve;
mod streams;
mod subscribe;

pub use crate::{
    backoff::LONGEST_RECONNECT,
    config::QueueConfig,
    connect::Queue,
    deliver::{Deliveries, Delivery},
    error::QueueError,
    publish::OutgoingJob,
    serve::{Request, Requests},
    streams::{Backlog, Streams},
    subscribe::Subscription,
};
