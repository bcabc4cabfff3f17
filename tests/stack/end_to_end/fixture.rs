//! What several of these tests start with or wait for.

use redial_proto::ToolEffect;
use redial_test_stack::{Stack, scripted_tool, until};

/// A stack with a dispatcher and a worker that has the scripted tool `tool`.
pub(crate) async fn with_tool(effect: ToolEffect) -> Stack {
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("tool", effect, &stack.ledger)]).await;
    stack
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
