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
    stack.finish().await;
}

/// How many retries of a tool wait in the backlog.
async fn held_back(stack: &Stack, tool: &str) -> i64 {
    let count = "SELECT count(*) FROM calls WHERE tool = $1 AND backlog_at IS NOT NULL AND backlog_retry";
    sqlx::query_scalar(count).bind(tool).fetch_one(stack.db()).await.unwrap()
}

/// What is observed is judged once a second, and the last thing that happens may be within it.
#[tokio::test]
async fn a_tool_that_succeeded_last_does_not_count_as_failing() {
    let mut stack = steady().await;
    stack.work(vec![tool(&stack, "down")]).await;
    let down = unique_path("down");
    let health = async |what: &str| {
        let health = format!("SELECT {what} FROM retry_budgets WHERE tool = 'down'");
        sqlx::query_scalar::<_, bool>(sqlx::AssertSqlSafe(health)).fetch_one(stack.db()).await.unwrap_or(false)
    };
    for _ in 0..3 {
        std::fs::write(&down, "").unwrap();
        submit_down(&stack, &down, 1, LONG).await;
        until("the tool is failing", async || health("failing_since IS NOT NULL").await.then_some(())).await;
        std::fs::remove_file(&down).unwrap();
        stack.drained(LONG).await;
        until("the tool is not failing", async || health("failing_since IS NULL").await.then_some(())).await;
    }
    stack.finish().await;
}
