//! Fetches arguments that are too large for the answer to a claim.

use std::time::Duration;

use redial_proto::{Code, ErrorClass, Failure, GrantRef, PieceRequest, subjects::ControlVerb};
use redial_queue::QueueError;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::state::WorkerState;

/// Arguments that are not there so long after their claim was sent are given up. Dispatchers end an attempt 30 s after its timeout,
/// counted from the grant: this, the 10 s after which a tool is overdue, and the way of the report have to fit into that.
pub(crate) const LONGEST: Duration = Duration::from_secs(15);
/// The arguments are given up after so many failures.
const TRIES: u32 = 5;

/// Why an attempt cannot begin.
pub(crate) enum Unfetched {
    /// Nobody answers in time, or it is held no more: the attempt is given back, because its tool did not start.
    GiveBack,
    /// There are no arguments, and there will be none: granted again, it would end here again.
    Failed(Failure),
}

/// Fetches the arguments of a grant, if they are there by `until`; they are asked for a few times.
pub(crate) async fn arguments(
    state: &WorkerState,
    granted: GrantRef,
    until: Instant,
) -> Result<Box<RawValue>, Unfetched> {
    let fetched = tokio::time::timeout_at(until, try_often(state, granted, until)).await;
    fetched.unwrap_or_else(|_| {
        tracing::warn!(call = %granted.call, attempt = granted.attempt, "Gave up fetching arguments: it took too long");
        Err(Unfetched::GiveBack)
    })
}

async fn try_often(state: &WorkerState, granted: GrantRef, until: Instant) -> Result<Box<RawValue>, Unfetched> {
    let mut failures = 0;
    loop {
        let error = match fetch(state, granted, until).await {
            Ok(arguments) => return Ok(arguments),
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
        tokio::time::sleep(state.pause(failures)).await;
    }
}

async fn fetch(state: &WorkerState, grant: GrantRef, until: Instant) -> Result<Box<RawValue>, QueueError> {
    let subject = state.subject(ControlVerb::Piece);
    let open = PieceRequest::Open { worker: state.id.clone(), grant };
    let bad = |reason: String| QueueError::Decode { subject: subject.clone(), reason };
    let opened = state.queue.piece(&subject, &open, until).await?.opened;
    let opened = opened.ok_or_else(|| bad("the reply names no payload".to_owned()))?;
    let left = until.saturating_duration_since(Instant::now());
    let body = state.queue.fetch_payload(&subject, opened, left).await?;
    let text = String::from_utf8(body.into()).map_err(|error| bad(error.to_string()))?;
    RawValue::from_string(text).map_err(|error| bad(error.to_string()))
}
