//! Redial's streams and subjects on NATS. No other crate of the program talks to NATS.
//!
//! NATS carries hints, Postgres is the truth: every message here may be lost, duplicated or late without harm, and
//! everything recovers by itself from a killed server, a wiped store or a lost connection.
//!
//! | file | does |
//! | --- | --- |
//! | `connect.rs` | connects, reconnects, counts dropped messages |
//! | `streams.rs` | create streams and consumers, check their settings |
//! | `publish.rs` | puts messages on streams and subjects |
//! | `consume.rs`, `pull.rs` | take messages from a consumer, never more than asked for |
//! | `delivery.rs` | a message that was taken, and how it is answered |
//! | `pieces.rs`, `apart.rs` | sends and fetches what does not fit into one message |
//! | `unreadable.rs` | finds messages that cannot be taken |
//! | `permissions.rs` | tells who waits for an answer that the server refused what was sent |
//! | `version.rs` | the version of the contract in headers |
//! | `request.rs`, `serve.rs`, `subscribe.rs` | core NATS: request, reply, subscribe |
//!
//! Which permissions each role needs is in `docs/PROTOCOL.md`; `redial nats-config` writes them.

mod apart;
mod api;
mod config;
mod connect;
mod consume;
mod delivery;
mod error;
mod permissions;
mod pieces;
mod publish;
mod pull;
mod request;
mod serve;
mod streams;
mod subscribe;
mod unreadable;
mod version;

pub use redial_records::OutgoingJob;

pub use crate::{
    config::QueueConfig,
    connect::{LONGEST_RECONNECT, Queue},
    consume::{Deliveries, Jobs},
    delivery::Delivery,
    error::QueueError,
    request::Origin,
    serve::{Request, Requests},
    streams::{ConsumerDepth, Streams, Unclaimed},
    subscribe::Subscription,
    unreadable::Unreadable,
};
