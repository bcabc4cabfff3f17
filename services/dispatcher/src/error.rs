//! Why a dispatcher does not start. Requests get an `ApiError` instead; outages while it runs are logged and waited
//! out.

use redial_proto::{ApiError, CallId, Code};
use redial_queue::QueueError;
use redial_store::StoreError;

/// Why a dispatcher does not start.
#[derive(Debug, thiserror::Error)]
pub enum DispatcherError {
    /// A setting is out of its range.
    #[error("dispatcher setting {0}")]
    Setting(String),
    /// The file of agents cannot be read, or declares a bad one.
    #[error("{}", .0.message)]
    Agents(ApiError),
    /// Postgres.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// NATS.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

impl DispatcherError {
    /// True if it may pass by itself.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Setting(_) | Self::Agents(_) => false,
            Self::Store(error) => error.is_transient(),
            Self::Queue(error) => error.is_retryable(),
        }
    }
}

/// The error that a user gets when the database fails; the details are logged.
pub(crate) fn store_failed(error: &StoreError) -> ApiError {
    if error.is_transient() {
        tracing::warn!(%error, "Database was not available");
        ApiError::new(Code::Unavailable, "the database is not available now; try again")
    } else {
        tracing::error!(%error, "Database refused a statement");
        ApiError::new(Code::Internal, "the dispatcher failed; its log has more")
    }
}

/// The error for an id that is not on record.
pub(crate) fn call_not_found(call: CallId) -> ApiError {
    ApiError::new(Code::CallNotFound, format!("no call {call} is on record"))
}
