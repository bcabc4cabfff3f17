//! Outputs that are too large or too deep end their call with a class, and are never redelivered without end. Workers check them, too.

use std::time::Duration;

use redial_proto::{CallState, ErrorClass, ToolSpec, limits};
use redial_test_stack::Stack;
use serde_json::json;

use super::by_hand::Hand;

#[tokio::test]
async fn oversize_and_overdeep_outputs_end_the_call_with_a_class() {
    // Nothing renews the lease while a large result is on its way.
    let stack = Stack::start_leasing(Duration::from_mins(1)).await;
    let mut hand = Hand::new(&stack, vec![ToolSpec::named("hand")]).await;
    let too_large = format!("\"{}\"", "x".repeat(limits::MAX_PAYLOAD));
    let too_deep = format!("{}{}", "[".repeat(limits::MAX_DEPTH + 1), "]".repeat(limits::MAX_DEPTH + 1));
    for (text, class) in [(too_large, ErrorClass::OutputTooLarge), (too_deep, ErrorClass::OutputInvalid)] {
        let call = stack.call("hand", json!({})).await;
        hand.granted().await;
        hand.report(call, 1, Ok(&text)).await;
        let view = stack.ended(call).await;
        assert_eq!((view.state, view.class, view.attempts), (CallState::Failed, Some(class), 1));
    }
    stack.finish().await;
}
