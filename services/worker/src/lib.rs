//! Pulls jobs, claims them, runs tools and reports results; the library for tool authors.
//!
//! ```no_run
//! use redial_worker::{ToolEffect, Tool, Worker, WorkerConfig};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Add {
//!     a: i64,
//!     b: i64,
//! }
//!
//! async fn add(numbers: Add) -> i64 {
//!     numbers.a + numbers.b
//! }
//!
//! # async fn run() -> Result<(), redial_worker::WorkerError> {
//! let config = WorkerConfig::new("nats://localhost:4222", "calculator");
//! let worker = Worker::new(config).add(Tool::new("add", add).effect(ToolEffect::Read));
//! worker.run(redial_worker::CancellationToken::new()).await
//! # }
//! ```
//!
//! A worker can also ask models, see [`Worker::models`]: a model's turn is a call like any other.
//!
//! Each step of a job is one file: `pull.rs` takes jobs from a pool (`pool.rs`), `claim.rs` asks for permission to run them,
//! `run.rs` runs one, and `report.rs` sends the result until it is on record. In the background `heartbeat.rs` renews
//! the leases, `control.rs` handles messages from the dispatchers, and `register.rs` tells them which tools this worker
//! runs. `cancel.rs`, `release.rs` and `drain.rs` end attempts early. `models.rs` turns models into tools, and
//! `deltas.rs` shows watchers what they write. All tasks share `state.rs`; `attempts.rs` lists the active attempts, and `heard.rs` says
//! until when a claim is granted.

#![warn(missing_docs)]

mod attempts;
mod cancel;
mod claim;
mod config;
mod control;
mod deltas;
mod drain;
mod error;
mod fetch;
mod heard;
mod heartbeat;
mod message;
mod models;
mod pool;
mod protect;
mod pull;
mod register;
mod release;
mod report;
mod resend;
mod run;
mod state;
mod worker;

pub use models::check_models;
pub use redial_proto::{
    Delta, ErrorClass, RetryBudget, RetryPolicy, ToolEffect, ToolSpec, TurnReply, TurnRequest, WorkerId,
};
pub use redial_queue::QueueConfig;
pub use redial_tools::{
    Allowed, AllowedError, CommandUser, Context, FileError, FileErrors, Handler, IntoToolResult, NativeTool, Rules,
    Tool, ToolConflict, ToolError, ToolResult, Watchers, WebhookKey,
};
pub use tokio_util::sync::CancellationToken;

pub use crate::{config::WorkerConfig, error::WorkerError, protect::protect_process, worker::Worker};
