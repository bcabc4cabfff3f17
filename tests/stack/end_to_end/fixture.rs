//! What several of these tests start with, ask or wait for.

use std::time::Duration;

use redial_proto::{ApiError, ToolEffect, subjects::Verb};
use redial_queue::{Queue, QueueError};
use redial_test_stack::{Stack, scripted_tool, until};
use serde::{Serialize, de::DeserializeOwned};

/// How long an answer may take.
pub(crate) const ANSWER: Duration = Duration::from_secs(25);

/// A stack with a dispatcher and a worker that has the scripted tool `tool`.
pub(crate) async fn with_tool(effect: ToolEffect) -> Stack {
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("tool", effect, &stack.ledger)]).await;
    stack
}

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

/// Rows of a table, perhaps with a condition.
pub(crate) async fn count(stack: &Stack, from: &str) -> i64 {
    let query = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {from}"));
    sqlx::query_scalar(query).fetch_one(stack.db()).await.unwrap()
}

/// Waits for this number of dead letters of a source: code, reason, payload.
pub(crate) async fn dead_letters(stack: &Stack, source: &str, count: usize) -> Vec<(String, String, Vec<u8>)> {
    until(&format!("{count} dead letters"), async || {
        let rows = sqlx::query_as("SELECT code, message, payload FROM dead_letters WHERE source = $1 ORDER BY id");
        let rows: Vec<_> = rows.bind(source).fetch_all(stack.db()).await.ok()?;
        (rows.len() >= count).then_some(rows)
    })
    .await
}
