//! What is retried, when and how often.

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use redial_proto::{
    CallId, CallState, ErrorClass, RetryBudget, RetryOverride, Submission, ToolEffect, ToolSpec, WaitReason,
};
use redial_test_stack::{Reply, ScriptedHttp, Stack, ToolEvent, arguments, scripted_tool, unique_path, until};
use serde_json::json;

use super::{by_hand::Hand, fixture::with_tool};

fn submission(orders: serde_json::Value, retry: RetryOverride) -> Submission {
    Submission { retry: Some(retry), ..Submission::new("tool", arguments(orders)) }
}

/// Start and end of each attempt.
async fn attempts(stack: &Stack, call: CallId) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
    let rows = sqlx::query_as("SELECT started_at, ended_at FROM attempts WHERE call_id = $1 ORDER BY attempt");
    rows.bind(call.0).fetch_all(stack.db()).await.unwrap()
}

#[tokio::test]
async fn the_retry_after_of_an_http_server_is_obeyed() {
    let server = ScriptedHttp::start().await;
    let busy = |seconds: &str| Reply::status(503).header("Retry-After", seconds);
    server.script("/stock", [busy("2"), busy("0"), Reply::json("{\"left\":3}")]);
    let manifest = unique_path("tools");
    let text = format!(
        "[[tool]]\nname = \"stock\"\neffect = \"read\"\nretry = {{ initial = \"1ms\", cap = \"1ms\" }}\n\
         [tool.http]\nmethod = \"GET\"\nurl = \"{}\"\n",
        server.url("/stock")
    );
    std::fs::write(&manifest, text).unwrap();
    let mut stack = Stack::start().await;
    stack.work(redial_tools::load(&manifest).unwrap()).await;
    let call = stack.call("stock", json!({})).await;
    assert_eq!(stack.output(call).await, "{\"left\":3}");
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let (pause, asked) = (requests[1].at - requests[0].at, TimeDelta::seconds(2));
    assert!(pause >= asked.to_std().unwrap(), "{pause:?}");
    let view = stack.get(call).await;
    let second = &view.attempts_made[1];
    assert!(second.retry_at.unwrap() - second.ended_at.unwrap() < asked, "due at once: {second:?}");
    stack.finish().await;
}

#[tokio::test]
async fn only_retryable_classes_are_retried() {
    let stack = with_tool(ToolEffect::Read).await;
    let mut calls = Vec::new();
    for class in ErrorClass::ALL {
        calls.push((class, stack.call("tool", json!({"fail": class, "times": 1})).await));
    }
    for (class, call) in calls {
        let passes =
            matches!(class, ErrorClass::Unavailable | ErrorClass::RateLimited | ErrorClass::Timeout | ErrorClass::Lost);
        let wanted = if passes { (CallState::Succeeded, 2) } else { (CallState::Failed, 1) };
        let view = stack.ended(call).await;
        assert_eq!((view.state, view.attempts), wanted, "{class}");
        assert_eq!(view.class, (!passes).then_some(class));
    }
    // The tool fails with class `lost`, so an attempt with that class is on record although no worker died.
    stack.workers_will_die();
    stack.finish().await;
}

#[tokio::test]
async fn a_call_fails_at_its_total_deadline() {
    let stack = with_tool(ToolEffect::Read).await;
    let deadline_ms = 3_000;
    let retry = RetryOverride { deadline_ms: Some(deadline_ms), max_attempts: Some(1000), ..RetryOverride::default() };
    let call = stack.accepted(&submission(json!({"fail": "unavailable"}), retry)).await;
    let view = stack.ended(call).await;
    // The deadline ends it once its next attempt would be due too late, or while that waits for its turn.
    let message = match view.class {
        Some(ErrorClass::BudgetExhausted) => "the call's total deadline passed after",
        _ => "(the next attempt would be due after the call's total deadline)",
    };
    assert!(view.message.as_ref().unwrap().contains(message), "{view:?}");
    assert_eq!(view.state, CallState::Failed);
    let after = |started: DateTime<Utc>| (started - view.submitted_at).num_milliseconds();
    let late =
        attempts(&stack, view.call).await.into_iter().filter(|a| after(a.0) > i64::try_from(deadline_ms).unwrap());
    assert_eq!(late.count(), 0, "no attempt starts after the deadline");
    // A Retry-After beyond the deadline ends the call at once.
    let order = json!({"fail": "rate_limited", "retry_after_ms": 3_600_000});
    let retry = RetryOverride { deadline_ms: Some(60_000), ..retry };
    let patient = stack.accepted(&submission(order, retry)).await;
    assert_eq!(stack.ended(patient).await.attempts, 1);
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

#[tokio::test]
async fn an_unsafe_tool_is_never_run_twice_on_a_guess() {
    let stack = with_tool(ToolEffect::Unsafe).await;
    let hold = json!({"hold": "/nonexistent"});
    let slow = Submission { timeout_ms: Some(100), ..Submission::new("tool", arguments(hold)) };
    let timed_out = stack.accepted(&slow).await;
    let failed = stack.call("tool", json!({"fail": "unavailable"})).await;
    let panicked = stack.call("tool", json!({"fail": "internal"})).await;
    let harmless = stack.call("tool", json!({"fail": "unavailable", "times": 2, "harmless": true})).await;
    for (call, class) in
        [(timed_out, ErrorClass::Timeout), (failed, ErrorClass::Unavailable), (panicked, ErrorClass::Internal)]
    {
        let view = stack.ended(call).await;
        assert_eq!((view.state, view.class, view.attempts), (CallState::Unknown, Some(class), 1));
        assert_eq!(stack.ledger.count(ToolEvent::Started, call), 1);
        assert!(view.message.unwrap().contains("an operator must inspect it"));
    }
    assert_eq!(stack.output(harmless).await, r#"{"attempt":3}"#, "certain that nothing happened: tried again");
    let ledger = stack.ledger.clone();
    stack.finish().await;
    assert_eq!((ledger.count(ToolEvent::Stopped, timed_out), ledger.count(ToolEvent::Effect, timed_out)), (1, 0));
}

/// More of them than one sweep takes at once, all due before the others.
#[tokio::test]
async fn due_calls_that_cannot_be_read_keep_no_other_call_waiting() {
    const MANY: usize = 600;
    let mut stack = Stack::start().await;
    Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let submission = || Submission::new("read", arguments(json!({})));
    stack.call_all(&(0..MANY).map(|_| submission()).collect::<Vec<_>>()).await;
    let unreadable =
        r#"UPDATE calls SET retry = '{"initial_ms": "soon"}', wake_at = clock_timestamp() - interval '1 s'"#;
    sqlx::query(unreadable).execute(stack.db()).await.unwrap();
    let soon = RetryOverride { deadline_ms: Some(200), ..RetryOverride::default() };
    let due = stack.accepted(&Submission { retry: Some(soon), ..submission() }).await;
    assert_eq!(stack.ended(due).await.state, CallState::Failed, "its deadline is noticed");
    let later = "SELECT count(*) FROM calls WHERE wake_at > clock_timestamp()";
    until("they are postponed", async || {
        let later: i64 = sqlx::query_scalar(later).fetch_one(stack.db()).await.unwrap();
        (later == i64::try_from(MANY).unwrap()).then_some(())
    })
    .await;
    sqlx::query("UPDATE calls SET retry = NULL WHERE wake_at IS NOT NULL").execute(stack.db()).await.unwrap();
    stack.leaves_calls();
    stack.finish().await;
}
