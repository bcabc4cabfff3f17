//! Every call ends.

use redial_proto::{CallState, ErrorClass, Submission, ToolEffect};
use redial_test_stack::{ToolEvent, arguments, scripted_tool, unique_path};
use serde_json::json;

use super::fixture::{count, steady};

/// The worker does not end the attempt, and goes on renewing its lease.
#[tokio::test]
async fn an_attempt_that_its_worker_does_not_end_is_ended_by_the_dispatcher() {
    let mut stack = steady().await;
    stack.work(vec![scripted_tool("stuck", ToolEffect::Read, &stack.ledger)]).await;
    let retry = serde_json::from_value(json!({"max_attempts": 1})).unwrap();
    let orders = arguments(json!({"hold": unique_path("never")}));
    let call = stack.accepted(&Submission { retry: Some(retry), ..Submission::new("stuck", orders) }).await;
    count(&stack, "stuck", "running", 1).await;
    // As if the attempt had begun an hour ago.
    stack.execute("UPDATE calls SET started_at = started_at - interval '1 h'").await;
    let view = stack.ended(call).await;
    assert_eq!((view.state, view.class), (CallState::Failed, Some(ErrorClass::Timeout)));
    let message = view.message.unwrap();
    assert!(message.contains("did not end within 30000 ms, and its worker did not stop it"), "{message}");
    // Its tool is stopped, too.
    stack.ledger.reaches(ToolEvent::Stopped, 1).await;
    stack.finish().await;
}
