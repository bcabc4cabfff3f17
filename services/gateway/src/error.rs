//! Why a gateway does not start, or stops. Requests get a [`crate::problem::Problem`] instead.

use std::{io, net::SocketAddr};

use redial_loops::LoopPanic;
use redial_proto::ApiError;
use redial_queue::QueueError;
use redial_store::StoreError;

/// Why a gateway does not start, or stops by itself.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    #[error("{0}")]
    Setting(String),
    #[error("{}", .0.message)]
    File(ApiError),
    /// The address cannot be listened on.
    #[error("listen is {address}: {error}; is another gateway running there? Set --listen to another address")]
    Listen { address: SocketAddr, error: io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A background loop panicked. The gateway has stopped, and must be started again.
    #[error(transparent)]
    Panicked(#[from] LoopPanic),
}
