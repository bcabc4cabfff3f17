//! Messages whose bodies travel apart, in pieces.

use std::time::Duration;

use async_nats::HeaderMap;
use redial_proto::{Payload, subjects};

/// How long the pieces of a large body may take at least.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_mins(2);

/// Returns the body that a message without one stands for.
pub(crate) fn payload_of(headers: Option<&HeaderMap>) -> Option<Payload> {
    headers?.get(subjects::PAYLOAD)?.as_str().parse().ok()
}
