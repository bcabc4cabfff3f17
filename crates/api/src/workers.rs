//! Workers, and what waits for them.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Workers.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkerList {
    /// The one that was seen last first.
    pub workers: Vec<WorkerItem>,
}

/// A worker.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkerItem {
    /// Its id.
    pub worker: String,
    /// Where it runs, as it says.
    pub host: Option<String>,
    /// Version of its program.
    pub version: String,
    /// The tools that it serves.
    pub tools: Vec<String>,
    /// Its tools that wait until an operator accepts them.
    pub waiting: Vec<String>,
    /// By its own clock.
    pub started_at: DateTime<Utc>,
    /// Calls that it can run at once.
    pub slots: i32,
    /// Calls that it runs.
    pub running: i32,
    /// It takes no more jobs.
    pub draining: bool,
    /// Its last heartbeat.
    pub last_seen_at: DateTime<Utc>,
    /// It was seen lately.
    pub alive: bool,
}

/// What waits and runs.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct QueueList {
    /// When this was read.
    pub at: DateTime<Utc>,
    /// False if there are more open calls than are counted: the numbers are lower bounds, the oldest may be older, and tools may be
    /// missing.
    pub is_complete: bool,
    /// Tools with open calls, at most 1,000.
    pub queues: Vec<QueueItem>,
}

/// The open calls of a tool.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct QueueItem {
    /// The tool; of turns `model-NAME`.
    pub tool: String,
    /// The pool whose workers run it.
    pub pool: String,
    /// Calls that wait for a worker.
    pub ready: u64,
    /// Those of them that have no job on the stream yet.
    pub backlog: u64,
    /// Calls that run.
    pub running: u64,
    /// Calls that wait for a retry.
    pub retry_wait: u64,
    /// Calls that wait for a client's answer.
    pub client_wait: u64,
    /// When the one that waits for a worker longest was submitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_ready_at: Option<DateTime<Utc>>,
    /// For how long it has waited, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_ready_ms: Option<i64>,
    /// A live worker has the tool.
    pub served: bool,
    /// Live workers that have it; only for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u64>,
    /// Calls that these can run at once, of all their tools; only for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u64>,
}
