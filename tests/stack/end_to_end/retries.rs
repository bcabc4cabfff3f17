//! What is retried, when and how often.

use chrono::TimeDelta;
use futures_util::future::join_all;
use redial_proto::{CallState, RetryBudget, RetryOverride, Submission, ToolEffect, ToolSpec, WaitReason};
use redial_test_stack::{Stack, arguments, scripted_tool, until};
use serde_json::json;

use super::by_hand::Hand;

fn submission(orders: serde_json::Value, retry: RetryOverride) -> Submission {
    Submission { retry: Some(retry), ..Submission::new("tool", arguments(orders)) }
}

#[tokio::test]
async fn the_pause_that_a_tool_asks_for_is_obeyed() {
    let stack = Stack::with_tool(ToolEffect::Read).await;
    let retry = RetryOverride { initial_ms: Some(1), cap_ms: Some(1), ..RetryOverride::default() };
    let order = json!({"fail": "rate_limited", "times": 1, "retry_after_ms": 2_000});
    let call = stack.accepted(&submission(order, retry)).await;
    // The checker compares when the second attempt began with when it was due.
    let view = stack.ended(call).await;
    let first = &view.attempts_made[0];
    assert!(first.retry_at.unwrap() - first.started_at >= TimeDelta::seconds(2), "{first:?}");
    stack.finish().await;
}

/// What holds a retry is named, and how many have their turn before it.
#[tokio::test]
async fn a_retry_that_the_budget_holds_back_tells_how_many_are_before_it() {
    let mut stack = Stack::start().await;
    // One retry, and then none while this test lasts.
    let budget = RetryBudget { burst: 1.0, per_success: 0.0, per_second: 0.001 };
    let tool = scripted_tool("tool", ToolEffect::Read, &stack.ledger).retry_budget(budget);
    stack.work(vec![tool]).await;
    let retry =
        RetryOverride { initial_ms: Some(1), cap_ms: Some(1), max_attempts: Some(2), ..RetryOverride::default() };
    let calls = stack.call_all(&vec![submission(json!({"fail": "unavailable"}), retry); 6]).await;
    until("five retries are held back, in an order", async || {
        let views = join_all(calls.iter().map(|call| stack.get(*call))).await.into_iter();
        let (waiting, _ended): (Vec<_>, Vec<_>) = views.partition(|view| view.state == CallState::Ready);
        let mut before = Vec::new();
        for view in &waiting {
            let waits = view.waits.as_ref().filter(|waits| waits.reason == WaitReason::Retries)?;
            waits.failing_since?;
            assert_eq!(view.next_attempt_at, waits.until_about, "{waits:?}");
            before.push(waits.retries_before?);
        }
        before.sort_unstable();
        (before == [0, 1, 2, 3, 4]).then_some(())
    })
    .await;
    for call in calls {
        stack.cancel(call).await;
    }
    stack.finish().await;
}

/// More of them than one sweep takes at once, all due before the others.
#[tokio::test]
async fn due_calls_that_cannot_be_read_keep_no_other_call_waiting() {
    const MANY: i64 = 600;
    let mut stack = Stack::start().await;
    Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let submission = || Submission::new("read", arguments(json!({})));
    stack.call_all(&(0..MANY).map(|_| submission()).collect::<Vec<_>>()).await;
    let unreadable =
        r#"UPDATE calls SET retry = '{"initial_ms": "soon"}', wake_at = clock_timestamp() - interval '1 s'"#;
    stack.execute(unreadable).await;
    let soon = RetryOverride { deadline_ms: Some(200), ..RetryOverride::default() };
    let due = stack.accepted(&Submission { retry: Some(soon), ..submission() }).await;
    assert_eq!(stack.ended(due).await.state, CallState::Failed, "its deadline is noticed");
    // They are postponed.
    stack.counts(MANY, "calls WHERE wake_at > clock_timestamp()").await;
    stack.execute("UPDATE calls SET retry = NULL WHERE wake_at IS NOT NULL").await;
    stack.leaves_calls();
    stack.finish().await;
}
