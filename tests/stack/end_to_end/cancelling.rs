//! After an acknowledged cancel nothing starts, and running attempts are stopped.

use std::time::Duration;

use redial_proto::{
    ApiError, CallId, CallState, CancelReply, CancelRequest, ClaimId, Code, ErrorClass, ToolEffect, ToolSpec,
    subjects::Verb,
};
use redial_queue::QueueError;
use redial_testkit::{Stack, ToolEvent, scripted_tool};
use serde_json::json;

use super::{by_hand::Hand, fixture::with_tool};

#[tokio::test]
async fn a_call_that_waits_never_starts() {
    let mut stack = Stack::start().await;
    Hand::new(&stack, vec![ToolSpec::named("tool")]).await;
    let call = stack.call("tool", json!({})).await;
    assert_eq!(stack.cancel(call).await, CallState::Cancelled);
    assert_eq!(stack.cancel(call).await, CallState::Cancelled, "again: it has ended that way");
    // A worker that starts now finds the job still on the stream.
    stack.work(vec![scripted_tool("tool", ToolEffect::Read, &stack.ledger)]).await;
    let other = stack.call("tool", json!({})).await;
    stack.output(other).await;
    let view = stack.get(call).await;
    assert_eq!((view.state, view.class, view.attempts), (CallState::Cancelled, Some(ErrorClass::Cancelled), 0));
    let ledger = stack.ledger.clone();
    stack.finish().await;
    assert_eq!(ledger.count(ToolEvent::Started, call), 0);
}

#[tokio::test]
async fn a_call_between_two_attempts_never_starts_again() {
    let stack = with_tool(ToolEffect::Read).await;
    let call = stack.call("tool", json!({"fail": "unavailable", "retry_after_ms": 60_000})).await;
    stack.is(call, CallState::RetryWait).await;
    assert_eq!(stack.cancel(call).await, CallState::Cancelled);
    assert_eq!(stack.get(call).await.attempts, 1);
    let evidence = stack.finish().await;
    assert_eq!(evidence.calls[&call].attempts.len(), 1);
}

#[tokio::test]
async fn a_running_tool_is_stopped() {
    for effect in ToolEffect::ALL {
        let mut stack = Stack::start_leasing(Duration::from_secs(15)).await;
        stack.work(vec![scripted_tool("tool", effect, &stack.ledger)]).await;
        let call = stack.call("tool", json!({"hold": "/nonexistent"})).await;
        stack.ledger.reaches(ToolEvent::Started, 1).await;
        assert_eq!(stack.cancel(call).await, CallState::Running, "its worker is notified");
        let view = stack.ended(call).await;
        assert_eq!((view.state, view.class, view.attempts), (CallState::Cancelled, Some(ErrorClass::Cancelled), 1));
        let message = view.message.unwrap();
        let told =
            if effect == ToolEffect::Read { "the tool changes nothing" } else { "the tool may have done its work" };
        assert!(message.contains(told), "{effect}: {message}");
        stack.ledger.reaches(ToolEvent::Stopped, 1).await;
        stack.finish().await;
    }
}

#[tokio::test]
async fn a_result_before_the_cancel_counts() {
    let stack = Stack::start_leasing(Duration::from_secs(15)).await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("tool")]).await;
    let call = stack.call("tool", json!({})).await;
    worker.granted().await;
    assert_eq!(stack.cancel(call).await, CallState::Running);
    worker.report(call, 1, Ok("1")).await;
    assert_eq!(stack.output(call).await, "1");
    assert_eq!(stack.cancel(call).await, CallState::Succeeded, "too late");
    stack.finish().await;
}

#[tokio::test]
async fn a_failure_after_a_cancel_is_not_retried() {
    let stack = with_tool(ToolEffect::Read).await;
    let mut worker =
        Hand::new(&stack, vec![ToolSpec { effect: ToolEffect::Read, pool: "hand".into(), ..ToolSpec::named("hand") }])
            .await;
    let call = stack.call("hand", json!({})).await;
    assert_eq!(worker.claim(call, 1).await.len(), 1);
    assert_eq!(stack.cancel(call).await, CallState::Running);
    let busy = redial_proto::Failure::new(ErrorClass::Unavailable, "busy");
    worker.report(call, 1, Err(busy)).await;
    let view = stack.ended(call).await;
    assert_eq!((view.state, view.attempts), (CallState::Cancelled, 1));
    let mut stack = stack;
    stack.leaves_jobs();
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

#[tokio::test]
async fn a_call_that_is_not_on_record_cannot_be_cancelled() {
    let stack = Stack::start().await;
    let call = CallId::generate();
    let (request, patience) = (CancelRequest { call }, std::time::Duration::from_secs(5));
    match stack.queue().ask::<_, CancelReply>(Verb::CallCancel, &request, patience).await {
        Err(QueueError::Api(ApiError { code: Code::CallNotFound, message, .. })) => {
            assert!(message.contains(&call.to_string()));
        }
        other => panic!("{other:?}"),
    }
    stack.finish().await;
}
