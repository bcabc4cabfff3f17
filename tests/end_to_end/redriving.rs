//! A redrive runs an ended call again as a new call; the old one never changes.

use redial_proto::{CallId, CallState, Code, SubmitStatus, ToolEffect};
use redial_testkit::{Stack, ToolEvent};
use serde_json::json;

use crate::fixture::with_tool;

async fn redrive_of(stack: &Stack, call: CallId) -> Option<uuid::Uuid> {
    let column = sqlx::query_scalar("SELECT redrive_of FROM call_history WHERE call = $1").bind(call.0);
    column.fetch_one(stack.db()).await.unwrap()
}

#[tokio::test]
async fn a_failed_call_runs_again_as_a_new_call() {
    let stack = with_tool(ToolEffect::Read).await;
    let old = stack.call("tool", json!({"fail": "business_rule", "times": 1})).await;
    let before = stack.ended(old).await;
    assert_eq!(before.state, CallState::Failed);
    let first = stack.redrive(old).await;
    let new = first.call.unwrap();
    assert_eq!((first.status, redrive_of(&stack, new).await), (SubmitStatus::Accepted, Some(old.0)));
    assert_ne!(new, old);
    let second = stack.redrive(old).await;
    assert_eq!(
        (second.status, second.call),
        (SubmitStatus::Existing, Some(new)),
        "a second redrive returns the same call"
    );
    assert_eq!(stack.ended(new).await.state, CallState::Failed, "its first attempt fails as ordered");
    let third = stack.redrive(new).await;
    assert_eq!(third.status, SubmitStatus::Accepted, "the new one can be redriven in turn");
    stack.ended(third.call.unwrap()).await;
    let after = stack.get(old).await;
    assert_eq!((after.state, after.finished_at), (before.state, before.finished_at));
    stack.finish().await;
}

#[tokio::test]
async fn attempts_and_redrives_share_one_idempotency_key() {
    let stack = with_tool(ToolEffect::Keyed).await;
    let first = stack.call("tool", json!({"fail": "unavailable", "times": 1})).await;
    stack.output(first).await;
    let failing = stack.call("tool", json!({"fail": "auth"})).await;
    stack.ended(failing).await;
    let second = stack.redrive(failing).await.call.unwrap();
    stack.ended(second).await;
    let third = stack.redrive(second).await.call.unwrap();
    stack.ended(third).await;
    let ledger = stack.ledger.clone();
    stack.finish().await;
    let keys = |calls: &[CallId]| -> Vec<String> {
        let entries = ledger.entries().into_iter().filter(|e| e.event == ToolEvent::Effect && calls.contains(&e.call));
        entries.map(|entry| entry.key).collect()
    };
    assert_eq!(keys(&[first]), [first.to_string(), first.to_string()]);
    assert_eq!(keys(&[failing, second, third]), vec![failing.to_string(); 3]);
}

#[tokio::test]
async fn a_call_that_cannot_run_again_is_rejected_with_the_reason() {
    let stack = with_tool(ToolEffect::Read).await;
    let done = stack.call("tool", json!({})).await;
    stack.output(done).await;
    let waiting = stack.call("tool", json!({"fail": "unavailable", "retry_after_ms": 60_000})).await;
    stack.is(waiting, CallState::RetryWait).await;
    for (call, code, text) in [
        (done, Code::WrongState, "the call succeeded"),
        (waiting, Code::WrongState, "only ended calls"),
        (CallId::generate(), Code::CallNotFound, "is on record"),
    ] {
        let result = stack.redrive(call).await;
        let error = result.error.unwrap();
        assert_eq!((result.status, error.code), (SubmitStatus::Rejected, code));
        assert!(error.message.contains(text), "{}", error.message);
    }
    assert_eq!(stack.cancel(waiting).await, CallState::Cancelled);
    let again = stack.redrive(waiting).await.call.unwrap();
    stack.is(again, CallState::RetryWait).await;
    stack.cancel(again).await;
    stack.finish().await;
}

#[tokio::test]
async fn an_unknown_call_runs_again_only_on_request() {
    let stack = with_tool(ToolEffect::Unsafe).await;
    let call = stack.call("tool", json!({"fail": "unavailable"})).await;
    assert_eq!(stack.ended(call).await.state, CallState::Unknown);
    let again = stack.redrive(call).await;
    assert_eq!(again.status, SubmitStatus::Accepted);
    assert_eq!(stack.ended(again.call.unwrap()).await.state, CallState::Unknown);
    stack.finish().await;
}

#[tokio::test]
async fn an_ended_call_refuses_every_change() {
    let stack = with_tool(ToolEffect::Read).await;
    let ended = [
        stack.call("tool", json!({})).await,
        stack.call("tool", json!({"fail": "auth"})).await,
        stack.call("tool", json!({"fail": "unavailable", "retry_after_ms": 60_000})).await,
    ];
    stack.is(ended[2], CallState::RetryWait).await;
    stack.cancel(ended[2]).await;
    for call in ended {
        stack.ended(call).await;
        for change in ["state = 'ready'", "attempt = attempt + 1", "message = NULL", "worker = 'me'"] {
            let statement = format!("UPDATE calls SET {change} WHERE id = '{call}'");
            let refused = sqlx::query(sqlx::AssertSqlSafe(statement)).execute(stack.db()).await.unwrap_err();
            assert!(refused.to_string().contains("ended calls never change"), "{change}: {refused}");
        }
    }
    stack.finish().await;
}
