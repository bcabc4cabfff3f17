//! Outputs that databases reject: stored unchanged or refused with a class, and never redelivered without end.

use std::time::Duration;

use redial_proto::{CallState, ErrorClass, JobRef, ToolEffect, ToolSpec, limits};
use redial_testkit::{Stack, scripted_tool};
use serde_json::json;

use super::by_hand::Hand;

const ODD: [&str; 8] = [
    r#""\u0000""#,
    r#"{"a\u0000b" : "\ud800", "c":"\udfff\ud83d"}"#,
    "1e400000",
    "-0.000000000000000000000000000000000000000000000000000000000000000000001E-999999",
    r#"{"twice":1,"twice":2}"#,
    "  [ 1 ,\t2\n]  ",
    "null",
    "\"\u{fffe}\u{10ffff} 订票\"",
];

#[tokio::test]
async fn odd_outputs_are_stored_unchanged() {
    let mut stack = Stack::start().await;
    stack.work(vec![scripted_tool("read", ToolEffect::Read, &stack.ledger)]).await;
    for text in ODD {
        let call = stack.call("read", json!({"output": text})).await;
        assert_eq!(stack.output(call).await, text.trim());
        let stored: String = sqlx::query_scalar("SELECT output::text FROM call_history WHERE call = $1")
            .bind(call.0)
            .fetch_one(stack.db())
            .await
            .unwrap();
        assert_eq!(stored, text.trim());
    }
    stack.finish().await;
}

#[tokio::test]
async fn a_worker_in_another_language_may_send_them_too() {
    let stack = Stack::start_leasing(Duration::from_secs(30)).await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    for text in ODD {
        let call = stack.call("read", json!({})).await;
        worker.granted().await;
        worker.report(call, 1, Ok(text)).await;
        assert_eq!(stack.output(call).await, text.trim());
    }
    stack.finish().await;
}

fn too_large() -> String {
    format!("\"{}\"", "x".repeat(limits::MAX_PAYLOAD))
}

fn too_deep() -> String {
    format!("{}{}", "[".repeat(limits::MAX_DEPTH + 1), "]".repeat(limits::MAX_DEPTH + 1))
}

#[tokio::test]
async fn oversize_and_overdeep_outputs_end_the_call_with_a_class() {
    // Nothing renews the lease while a large result is on its way.
    let mut stack = Stack::start_leasing(Duration::from_mins(1)).await;
    let mut hand = Hand::new(&stack, vec![ToolSpec::named("hand")]).await;
    for (text, class) in [(too_large(), ErrorClass::OutputTooLarge), (too_deep(), ErrorClass::OutputInvalid)] {
        let call = stack.call("hand", json!({})).await;
        hand.granted().await;
        hand.report(call, 1, Ok(&text)).await;
        let view = stack.ended(call).await;
        assert_eq!((view.state, view.class, view.attempts), (CallState::Failed, Some(class), 1));
    }
    let ledger = stack.ledger.clone();
    stack.work(vec![scripted_tool("read", ToolEffect::Read, &ledger), large()]).await;
    let deep = stack.call("read", json!({"output": too_deep()})).await;
    let large = stack.call("large", json!({})).await;
    for (call, class) in [(deep, ErrorClass::OutputInvalid), (large, ErrorClass::OutputTooLarge)] {
        let view = stack.ended(call).await;
        assert_eq!((view.state, view.class, view.attempts), (CallState::Failed, Some(class), 1), "{view:?}");
        assert!(view.message.unwrap().contains("it starts: "), "a preview");
    }
    stack.finish().await;
}

/// A tool with an output that is larger than the arguments of a scripted tool can be.
fn large() -> redial_tools::Tool {
    redial_tools::Tool::new("large", |_: serde_json::Value| async { "x".repeat(limits::MAX_PAYLOAD) })
        .effect(ToolEffect::Read)
}

#[tokio::test]
async fn the_largest_output_and_the_largest_arguments_pass() {
    let mut stack = Stack::start_leasing(Duration::from_secs(30)).await;
    stack.work(vec![redial_tools::Tool::echo()]).await;
    let mut hand = Hand::new(&stack, vec![ToolSpec::named("hand")]).await;
    let text = "x".repeat(limits::MAX_PAYLOAD - 8);
    let echoed = stack.call("echo", json!({"a": text})).await;
    assert_eq!(stack.output(echoed).await.len(), limits::MAX_PAYLOAD);
    let call = stack.call("hand", json!({})).await;
    hand.claim(call, 1).await;
    let output = format!("\"{}\"", "x".repeat(limits::MAX_PAYLOAD - 2));
    // On a busy machine its way takes longer than a lease.
    tokio::select! {
        () = hand.renewing(JobRef { call, attempt: 1 }) => unreachable!("it has no end"),
        () = hand.report(call, 1, Ok(&output)) => {}
    }
    assert_eq!(stack.output(call).await, output);
    stack.leaves_jobs();
    stack.finish().await;
}
