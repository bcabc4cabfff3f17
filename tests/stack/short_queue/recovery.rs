//! A tool is down for a while, and calls of it wait.

use std::time::Duration;

use redial_proto::CallState;
use redial_test_stack::{Stack, unique_path, until, until_within};

use super::fixture::{LONG, count, states, steady, submit, submit_down, tool};

#[tokio::test]
async fn the_waiting_calls_of_a_tool_that_was_down_all_succeed_once_it_is_back() {
    let mut stack = steady().await;
    stack.work(vec![tool(&stack, "down"), tool(&stack, "good")]).await;
    let down = unique_path("down");
    std::fs::write(&down, "").unwrap();
    // At one retry a second, which is what a tool gets that is down, most would reach their deadline.
    submit_down(&stack, &down, 2_000, Duration::from_mins(2)).await;
    until_within(LONG, "most calls wait for a retry", async || (held_back(&stack, "down").await > 1_500).then_some(()))
        .await;
    // Others do not notice.
    submit(&stack, "good", 500).await;
    count(&stack, "good", "succeeded", 500).await;
    // What is observed is judged once a second.
    until("the tool is known to be down", async || {
        let down = "SELECT failing_since IS NOT NULL AND per_second = 1 FROM retry_budgets WHERE tool = 'down'";
        sqlx::query_scalar(down).fetch_one(stack.db()).await.unwrap_or(false).then_some(())
    })
    .await;
    std::fs::remove_file(&down).unwrap();
    stack.drained(LONG).await;
    assert_eq!(states(&stack, "down", CallState::Succeeded.as_str()).await, 2_000);
    // The last thing that happened may be within that second.
    until("the tool is not known to be down any more", async || {
        let up = "SELECT failing_since IS NULL FROM retry_budgets WHERE tool = 'down'";
        sqlx::query_scalar(up).fetch_one(stack.db()).await.unwrap_or(false).then_some(())
    })
    .await;
    stack.finish().await;
}

/// How many retries of a tool wait in the backlog.
async fn held_back(stack: &Stack, tool: &str) -> i64 {
    let count = "SELECT count(*) FROM calls WHERE tool = $1 AND backlog_at IS NOT NULL AND backlog_retry";
    sqlx::query_scalar(count).bind(tool).fetch_one(stack.db()).await.unwrap()
}
