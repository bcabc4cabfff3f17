//! Pulls, claims, runs, reports; the library for tool authors.
//!
//! ```no_run
//! use redial_worker::{Effect, Tool, Worker, WorkerConfig};
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
//! let worker = Worker::new(config).add(Tool::new("add", add).effect(Effect::Read));
//! worker.run(redial_worker::CancellationToken::new()).await
//! # }
//! ```
//!
//! The same worker asks models: [`Worker::models`]; to Redial a model's turn is a call like any other.
//!
//! One job's life, one file for each verb: `pull.rs` takes it from its pool, `claim.rs` asks for the right to run it,
//! `run.rs` runs it, `report.rs` tells how it ended until a dispatcher has that on record. Beside them `renew.rs` keeps
//! the leases, `notice.rs` listens to what dispatchers say unasked, `register.rs` says what this worker can do,
//! `release.rs` gives attempts back and `drain.rs` ends it all in order; `models.rs` makes tools of models, `deltas.rs`
//! shows what they write meanwhile. What they share is in `shared.rs`; `held.rs` is the list of attempts that this worker
//! answers for.

mod claim;
mod config;
mod deltas;
mod drain;
mod error;
mod heartbeat;
mod held;
mod models;
mod notice;
mod outbox;
mod pause;
mod pull;
mod register;
mod release;
mod report;
mod run;
mod shared;
mod worker;

pub use redial_llm::ModelsError;
pub use redial_proto::{Delta, Effect, ErrorClass, RetryPolicy, ToolSpec, TurnReply, TurnRequest, WorkerId};
pub use redial_queue::QueueConfig;
pub use redial_tools::{
    Answer, Context, Handler, IntoAnswer, ManifestError, NativeTool, Rules, Tool, ToolConflict, ToolError, Watchers,
};
pub use tokio_util::sync::CancellationToken;

pub use crate::{config::WorkerConfig, error::WorkerError, worker::Worker};
