//! A redrive runs an ended call again as a new call; the old one never changes.

use std::time::Duration;

use redial_proto::{
    CallId, CallState, Code, RedriveReply, RedriveRequest, SubmitResult, SubmitStatus, ToolEffect, subjects::Verb,
};
use redial_queue::QueueError;
use redial_test_stack::{Stack, ToolEvent, arguments};
use redial_tools::{Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[tokio::test]
async fn attempts_and_redrives_share_one_idempotency_key() {
    let stack = Stack::with_tool(ToolEffect::Keyed).await;
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
    let stack = Stack::with_tool(ToolEffect::Read).await;
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

async fn redrive_with(stack: &Stack, call: CallId, value: Value) -> SubmitResult {
    let request = RedriveRequest { calls: vec![call], arguments: Some(arguments(value)) };
    let answer = stack.queue().ask::<_, RedriveReply>(Verb::CallRedrive, &request, Duration::from_secs(25)).await;
    answer.unwrap().results.remove(0)
}

#[tokio::test]
async fn a_call_runs_again_with_other_arguments() {
    let stack = Stack::with_tool(ToolEffect::Keyed).await;
    let old = stack.call("tool", json!({"fail": "auth"})).await;
    stack.ended(old).await;
    let edited = redrive_with(&stack, old, json!({"output": "17"})).await;
    let new = edited.call.unwrap();
    let repeats = format!("call_history WHERE call = '{new}' AND redrive_of = '{old}'");
    assert_eq!((edited.status, stack.count(&repeats).await), (SubmitStatus::Accepted, 1));
    assert_eq!(stack.output(new).await, "17");
    // The same request again gets the same call, another edit does not, and no second call is made.
    let same = redrive_with(&stack, old, json!({"output": "17"})).await;
    assert_eq!((same.status, same.call), (SubmitStatus::Existing, Some(new)));
    let other = redrive_with(&stack, old, json!({"output": "18"})).await.error.unwrap();
    assert!(other.code == Code::IdempotencyConflict && other.message.contains(&new.to_string()), "{other}");
    let plain = stack.redrive(old).await;
    assert_eq!((plain.status, plain.call), (SubmitStatus::Existing, Some(new)));
    let done = redrive_with(&stack, new, json!({})).await.error.unwrap();
    assert_eq!(done.code, Code::WrongState, "one that succeeded is submitted again instead");
    let keys: Vec<String> = stack.ledger.entries().into_iter().filter(|e| e.call == new).map(|e| e.key).collect();
    assert!(keys.iter().all(|key| *key == new.to_string()), "a service would answer for the old arguments: {keys:?}");
    stack.finish().await;
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    n: i64,
}

#[tokio::test]
async fn other_arguments_are_checked_and_a_refused_call_can_have_them() {
    let mut stack = Stack::start().await;
    stack.work(vec![Tool::new("count", |count: Count| async move { Ok::<_, ToolError>(count.n) })]).await;
    let refused = stack.submit(&redial_proto::Submission::new("count", arguments(json!({"n": "many"})))).await;
    let old = refused.call.unwrap();
    assert_eq!(refused.status, SubmitStatus::Refused);
    let wrong = redrive_with(&stack, old, json!({"n": "some"})).await;
    let error = wrong.error.unwrap();
    assert_eq!((wrong.status, wrong.call, error.code), (SubmitStatus::Rejected, None, Code::InvalidArguments));
    assert_eq!(error.details[0].path, "/n");
    assert!(wrong.feedback.is_some(), "a model can correct itself by it");
    let two = RedriveRequest { calls: vec![old, old], arguments: Some(arguments(json!({"n": 1}))) };
    let two = stack.queue().ask::<_, RedriveReply>(Verb::CallRedrive, &two, Duration::from_secs(25)).await;
    assert!(matches!(two, Err(QueueError::Api(error)) if error.code == Code::InvalidValue));
    // What was wrong left nothing behind; and what can be repaired is.
    let right = redrive_with(&stack, old, json!({"n": "3"})).await;
    assert_eq!(stack.output(right.call.unwrap()).await, "3");
    stack.finish().await;
}
