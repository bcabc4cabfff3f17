//! Fetches arguments that are too large for the answer to a claim.

use std::time::Duration;

use redial_proto::{Code, ErrorClass, Failure, Grant, GrantRef, PieceRequest, subjects::ControlVerb};
use redial_queue::QueueError;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::{pause, state::WorkerState};

/// Opening and fetching take no longer than this, each time.
const TIMEOUT: Duration = Duration::from_mins(2);
/// The worker gives the attempt back after so many failures; nothing was started.
const TRIES: u32 = 5;

/// Why an attempt cannot begin.
pub(crate) enum Unfetched {
    /// Nobody answers, or it is held no more: the attempt is given back.
    GiveBack,
    /// There are no arguments, and there will be none: granted again, it would end here again.
    Failed(Failure),
}

/// The grant with its arguments; they are asked for a few times.
pub(crate) async fn arguments(state: &WorkerState, granted: GrantRef, grant: Grant) -> Result<Grant, Unfetched> {
    let mut failures = 0;
    loop {
        let error = match fetch(state, granted).await {
            Ok(arguments) => return Ok(Grant { arguments, apart: false, ..grant }),
            Err(error) => error,
        };
        failures += 1;
        tracing::warn!(call = %granted.call, attempt = granted.attempt, failures, %error, "Failed to fetch arguments");
        match error {
            QueueError::Api(error) if error.code == Code::Internal => {
                return Err(Unfetched::Failed(Failure::new(ErrorClass::Internal, error.message).without_effect()));
            }
            QueueError::Api(error) if !error.code.is_retryable() => return Err(Unfetched::GiveBack),
            _ if failures >= TRIES => return Err(Unfetched::GiveBack),
            _ => {}
        }
        tokio::time::sleep(pause::after(failures, state.pause_cap())).await;
    }
}

async fn fetch(state: &WorkerState, grant: GrantRef) -> Result<Box<RawValue>, QueueError> {
    let subject = state.subject(ControlVerb::Piece);
    let open = PieceRequest::Open { worker: state.id.clone(), grant };
    let bad = |reason: String| QueueError::Decode { subject: subject.clone(), reason };
    let opened = state.queue.piece(&subject, &open, Instant::now() + TIMEOUT).await?.opened;
    let opened = opened.ok_or_else(|| bad("the reply names no payload".to_owned()))?;
    let body = state.queue.fetch_payload(&subject, opened, TIMEOUT).await?;
    let text = String::from_utf8(body.into()).map_err(|error| bad(error.to_string()))?;
    RawValue::from_string(text).map_err(|error| bad(error.to_string()))
}
