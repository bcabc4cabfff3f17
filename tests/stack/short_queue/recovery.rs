//! A tool is down for a while, and calls of it wait.

use std::time::Duration;

use redial_proto::{CallState, RetryBudget, RetryOverride, Submission, SubmitResult, subjects::Verb};
use redial_test_stack::{arguments, unique_path, until_within};
use serde_json::json;

use super::fixture::{LONG, count, states, steady, submit, submit_down, tool, waiting};

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

#[tokio::test]
async fn the_call_of_another_tenant_does_not_wait_for_the_retries_of_one() {
    const CALLS: u64 = 1_000;
    let mut stack = steady().await;
    let budget = RetryBudget { burst: 100_000.0, ..RetryBudget::default() };
    stack.work(vec![tool(&stack, "down").retry_budget(budget)]).await;
    let no_tokens =
        "INSERT INTO retry_budgets (tool, tokens, per_second, usual_rate, successes, failures, stepped_at, learned,
                         learned_since, updated_at)
                     VALUES ('down', 0, 1, 0, 0, 0, now(), 0, now(), now())";
    stack.execute(no_tokens).await;
    let other = stack.user("globex", "bob").await;
    let called = async || {
        let submission = Submission::new("down", arguments(json!({})));
        let result: SubmitResult = other.ask(Verb::CallSubmit, &submission, LONG).await.unwrap();
        stack.wait_for_end(result.call.unwrap()).await;
    };
    // Both tenants are active: windows are short.
    called().await;
    let down = unique_path("down");
    std::fs::write(&down, "").unwrap();
    let retry = Some(RetryOverride { max_attempts: Some(100), ..RetryOverride::default() });
    let orders = |n| arguments(json!({"n": n, "down_while": down, "after_ms": 300}));
    let calls: Vec<_> = (0..CALLS).map(|n| Submission { retry, ..Submission::new("down", orders(n)) }).collect();
    stack.call_all(&calls).await;
    let most =
        async || (waiting(&stack, "down").await > 950 && states(&stack, "down", "running").await == 0).then_some(());
    until_within(LONG, "the retries wait for tokens", most).await;
    std::fs::remove_file(&down).unwrap();
    stack.execute("UPDATE retry_budgets SET tokens = 100000 WHERE tool = 'down'").await;
    count(&stack, "down", "running", 64).await;
    called().await;
    let left = waiting(&stack, "down").await;
    assert!(left > 100, "{left} retries of the other tenant are left");
    stack.drained(LONG).await;
    stack.finish().await;
}
