//! Outputs that are too large or too deep end their call with a class, and are never redelivered without end.

use std::time::Duration;

use redial_proto::{CallState, ErrorClass, ToolEffect, ToolSpec, limits};
use redial_test_stack::{Stack, scripted_tool};
use serde_json::json;

use super::by_hand::Hand;

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
