//! A tool is down for a while, and calls of it wait.

use std::time::Duration;

use redial_proto::CallState;
use redial_test_stack::{unique_path, until_within};

use super::fixture::{LONG, count, states, steady, submit, submit_down, tool};

#[tokio::test]
async fn the_waiting_calls_of_a_tool_that_was_down_all_succeed_once_it_is_back() {
    let mut stack = steady().await;
    stack.work(vec![tool(&stack, "down"), tool(&stack, "good")]).await;
    let down = unique_path("down");
    std::fs::write(&down, "").unwrap();
    // At one retry a second, which is what a tool gets that is down, most would reach their deadline.
    submit_down(&stack, &down, 2_000, Duration::from_mins(2)).await;
    let held_back = "calls WHERE tool = 'down' AND backlog_at IS NOT NULL AND backlog_retry";
    let most = async || (stack.count(held_back).await > 1_500).then_some(());
    until_within(LONG, "most calls wait for a retry", most).await;
    // Others do not notice.
    submit(&stack, "good", 500).await;
    count(&stack, "good", "succeeded", 500).await;
    // What is observed is judged once a second.
    let known = "SELECT failing_since IS NOT NULL AND per_second = 1 FROM retry_budgets WHERE tool = 'down'";
    stack.holds("the tool is known to be down", known).await;
    std::fs::remove_file(&down).unwrap();
    stack.drained(LONG).await;
    assert_eq!(states(&stack, "down", CallState::Succeeded.as_str()).await, 2_000);
    // The last thing that happened may be within that second.
    let up = "SELECT failing_since IS NULL FROM retry_budgets WHERE tool = 'down'";
    stack.holds("the tool is not known to be down any more", up).await;
    stack.finish().await;
}
