//! Why a worker stops. All other errors, such as an unreachable dispatcher or a failed tool, are logged, and the worker
//! continues.

use redial_loops::LoopPanic;
use redial_proto::ApiError;
use redial_queue::QueueError;
use redial_tools::{FileErrors, ToolConflict};

/// The reason why a worker cannot start, or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The worker has neither tools nor models.
    #[error("the worker has no tools and no models; at least one is needed: a function, a tools.toml, a models.toml")]
    NoTools,
    /// [`crate::WorkerConfig::slots`] or [`crate::WorkerConfig::command_slots`] is out of range.
    #[error("{setting} is {slots}; allowed: 1 to {max}")]
    Slots {
        /// The name of the setting.
        setting: &'static str,
        /// The configured number.
        slots: u32,
        /// The largest allowed number.
        max: u32,
    },
    /// [`crate::WorkerConfig::pools`] holds a name that is not allowed, or too many.
    #[error("pools: {0}")]
    Pools(String),
    /// A tool's specification is invalid.
    #[error("tool {tool:?}: {reason}")]
    Tool {
        /// The tool's name.
        tool: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// Two tools have the same name, or different limits for one pool.
    #[error(transparent)]
    Conflict(#[from] ToolConflict),
    /// A tool manifest (`tools.toml`) or a file of models (`models.toml`) cannot be loaded.
    #[error(transparent)]
    File(#[from] FileErrors),
    /// NATS rejects the worker: wrong credentials, missing permissions, or a message over its size limit.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A dispatcher refused the registration, for example because a tool's schema is invalid.
    #[error("the dispatcher refused this worker's tools: {0}")]
    Refused(ApiError),
    /// A background loop panicked. The worker has stopped, and must be started again.
    #[error(transparent)]
    Panicked(#[from] LoopPanic),
}
