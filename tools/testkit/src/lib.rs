//! Real servers, scripted ones, faults and the checker, for tests. Nothing here needs a service of Redial.
//!
//! | part | is |
//! | --- | --- |
//! | [`Servers`], [`Database`], [`PostgresPair`], [`Process`], [`Paused`], [`FaultProxy`] | Postgres, NATS and programs that can be killed, paused, cut off |
//! | [`Evidence`], [`Claims`], [`check`] | the checker of the invariants that every test must leave intact |
//! | [`scripted_tool`], [`Ledger`] | a tool that does what its arguments say, and the file that records what it did |
//! | [`ScriptedHttp`], [`RawNats`] | a scripted HTTP server; a NATS client that sends any bytes |
//!
//! Everything here panics with a clear message when it cannot do what a test asked for, because the test cannot run on.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failure here is a failure of the test that asked")]
#![expect(clippy::missing_panics_doc, reason = "see above")]

mod checker;
mod databases;
mod fault_proxy;
mod home;
mod ledger;
mod nats_cluster;
mod observer;
mod paused;
mod postgres_pair;
mod process;
mod raw_nats;
mod scripted_http;
mod scripted_tool;
mod servers;
mod wait;

pub use checker::{
    AttemptFacts, CallFacts, Claims, Disturbance, Ear, Evidence, Heard, Invariant, Subject, TaskFacts, Violation,
    canary, check,
};
pub use databases::{Database, serve_postgres};
pub use fault_proxy::{FaultProxy, Side};
pub use home::unique_path;
pub use ledger::{Entry, Ledger, ToolEvent};
pub use nats_cluster::NatsCluster;
pub use observer::{Observer, OpenTransaction, Pause, Progress, Running};
pub use paused::Paused;
pub use postgres_pair::PostgresPair;
pub use process::Process;
pub use raw_nats::{RawNats, Received};
pub use scripted_http::{Reply, Request, ScriptedHttp};
pub use scripted_tool::{arguments, scripted_tool};
pub use servers::Servers;
pub use wait::{until, until_within, within};
