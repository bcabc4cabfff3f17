//! Why a dispatcher does not start, or stops. Requests get an `ApiError` instead; outages while it runs are logged and waited
//! out.

use redial_engine::tools::Tools;
use redial_loops::LoopPanic;
use redial_proto::{ApiError, CallId, Code};
use redial_queue::QueueError;
use redial_store::StoreError;

use crate::agents::closest;

/// Why a dispatcher does not start, or stops by itself.
#[derive(Debug, thiserror::Error)]
pub enum DispatcherError {
    #[error("dispatcher setting {0}")]
    Setting(String),
    /// The file of agents or the access file cannot be read, or is wrong.
    #[error("{}", .0.message)]
    File(ApiError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A background loop panicked. The dispatcher has stopped, and must be started again.
    #[error(transparent)]
    Panicked(#[from] LoopPanic),
}

impl DispatcherError {
    /// Returns true if Postgres or NATS could not be reached, or did not answer.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::Setting(_) | Self::File(_) | Self::Panicked(_) => false,
            Self::Store(error) => error.is_transient(),
            Self::Queue(error) => error.is_outage(),
        }
    }

    /// Returns true if the error may pass by itself.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Setting(_) | Self::File(_) | Self::Panicked(_) => false,
            Self::Store(error) => error.is_transient(),
            Self::Queue(error) => error.is_retryable(),
        }
    }
}

/// Logs the details; returns the error that a user gets when the database fails.
pub(crate) fn store_failed(error: &StoreError) -> ApiError {
    if error.is_transient() {
        tracing::warn!(%error, "Database was not available");
        ApiError::new(Code::Unavailable, "the database is not available now; try again")
    } else {
        tracing::error!(%error, "Database refused a statement");
        ApiError::new(Code::Internal, "the dispatcher failed; its log has more")
    }
}

pub(crate) fn call_not_found(call: CallId) -> ApiError {
    ApiError::new(Code::CallNotFound, format!("no call {call} is on record"))
}

pub(crate) fn tool_not_registered(tool: &str, tools: &Tools) -> ApiError {
    let close = closest(tool, tools.values().map(|tool| tool.spec.name.as_str()));
    let close = close.map(|names| format!("did you mean {names}? ")).unwrap_or_default();
    let message = format!("no tool {tool:?} is registered; {close}`redial tools` lists the tools");
    ApiError::new(Code::UnknownTool, message)
}
