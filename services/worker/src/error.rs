//! Why a worker stops. Everything else (an unreachable dispatcher, a failed tool) is logged and lived with.

use redial_llm::ModelsError;
use redial_proto::ApiError;
use redial_queue::QueueError;
use redial_tools::{ManifestError, ToolConflict};

/// Why a worker cannot run.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It has nothing to do.
    #[error("the worker has no tools and no models; at least one is needed: a function, a tools.toml, a models.toml")]
    NoTools,
    /// It could run nothing, or too much.
    #[error("slots is {slots}; allowed: 1 to {max}")]
    Slots {
        /// What was asked for.
        slots: u32,
        /// The most.
        max: u32,
    },
    /// A tool's spec is wrong.
    #[error("tool {tool:?}: {reason}")]
    Tool {
        /// Its name.
        tool: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// Two tools do not go together.
    #[error(transparent)]
    Conflict(#[from] ToolConflict),
    /// A tool manifest is wrong.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A file of models is wrong.
    #[error(transparent)]
    Models(#[from] ModelsError),
    /// NATS cannot be used.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The dispatchers do not take this worker's tools.
    #[error("the dispatcher refused this worker's tools: {0}")]
    Refused(ApiError),
    /// The server closed the connection for good, e.g. because the user was removed.
    #[error("the connection to NATS was closed for good")]
    Closed,
}
