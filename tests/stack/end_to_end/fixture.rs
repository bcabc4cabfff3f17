//! What several of these tests ask or wait for.

use std::time::Duration;

use redial_proto::{ApiError, subjects::Verb};
use redial_queue::{Queue, QueueError};
use redial_test_stack::{Stack, until};
use serde::{Serialize, de::DeserializeOwned};

/// How long an answer may take.
pub(crate) const ANSWER: Duration = Duration::from_secs(25);

/// Asks as a user; the answer, or the error that a dispatcher answered with.
pub(crate) async fn ask<R: DeserializeOwned>(
    user: &Queue,
    verb: Verb,
    request: &impl Serialize,
) -> Result<R, ApiError> {
    api(user.ask(verb, request, ANSWER).await)
}

/// The answer, or the error that a dispatcher answered with.
pub(crate) fn api<R>(answer: Result<R, QueueError>) -> Result<R, ApiError> {
    match answer {
        Ok(reply) => Ok(reply),
        Err(QueueError::Api(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

/// Waits for this number of dead letters of a source: code, reason, payload.
pub(crate) async fn dead_letters(stack: &Stack, source: &str, count: usize) -> Vec<(String, String, Vec<u8>)> {
    let letters = format!("SELECT code, message, payload FROM dead_letters WHERE source = '{source}' ORDER BY id");
    until(&format!("{count} dead letters"), async || {
        Some(stack.rows(&letters).await).filter(|rows| rows.len() >= count)
    })
    .await
}
