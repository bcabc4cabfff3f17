//! After an acknowledged cancel nothing starts, and running attempts are stopped.

use std::time::Duration;

use redial_proto::{CallState, ClaimId, ErrorClass, ToolEffect, ToolSpec};
use redial_test_stack::{Stack, ToolEvent, scripted_tool};
use serde_json::json;

use super::by_hand::Hand;

#[tokio::test]
async fn a_running_tool_is_stopped() {
    let mut stack = Stack::start_leasing(Duration::from_secs(15)).await;
    stack.work(vec![scripted_tool("tool", ToolEffect::Read, &stack.ledger)]).await;
    let call = stack.call("tool", json!({"hold": "/nonexistent"})).await;
    stack.ledger.reaches(ToolEvent::Started, 1).await;
    assert_eq!(stack.cancel(call).await, CallState::Running, "its worker is notified");
    let view = stack.ended(call).await;
    assert_eq!((view.state, view.class, view.attempts), (CallState::Cancelled, Some(ErrorClass::Cancelled), 1));
    assert!(view.message.as_ref().unwrap().contains("the tool changes nothing"), "{view:?}");
    stack.ledger.reaches(ToolEvent::Stopped, 1).await;
    stack.finish().await;
}

/// The cancel is written after the release has read the call.
#[tokio::test]
async fn an_attempt_that_is_released_during_a_cancel_does_not_wait_for_its_lease() {
    let stack = Stack::start().await;
    let worker = Hand::new(&stack, vec![ToolSpec::named("tool")]).await;
    let call = stack.call("tool", json!({})).await;
    let (job, claim) = (worker.job().await, ClaimId::generate());
    assert_eq!(worker.claim_as(claim, job.call, job.attempt).await.len(), 1);
    let mut cancel = stack.db().begin().await.unwrap();
    sqlx::query("UPDATE calls SET cancel_requested = true").execute(&mut *cancel).await.unwrap();
    let overtake = async {
        stack.waits_for_lock().await;
        cancel.commit().await.unwrap();
    };
    let (released, ()) = tokio::join!(worker.release(claim, call, 1), overtake);
    assert_eq!(released, 1);
    let view = stack.get(call).await;
    assert_eq!((view.state, view.attempts), (CallState::Cancelled, 1));
    stack.finish().await;
}
