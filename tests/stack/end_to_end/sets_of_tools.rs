//! A pool has a consumer for each set of tools, and few of them.

use redial_proto::{Code, ToolSpec, subjects::MAX_CONSUMERS};
use redial_test_stack::Stack;

use super::by_hand::Hand;

/// The permissions of a pool name its consumers one by one.
#[tokio::test]
async fn a_pool_has_at_most_sixteen_sets_of_tools() {
    let stack = Stack::start_pinned().await;
    let mut hands = Vec::new();
    for n in 0..MAX_CONSUMERS {
        hands.push(Hand::new(&stack, vec![ToolSpec::named(format!("tool-{n}"))]).await);
    }
    assert_eq!(hands.last().unwrap().consumer, "default+16");
    let one_more = Hand::of_identity(&stack, "manual").await;
    let error = one_more.try_register(vec![ToolSpec::named("one-more")]).await.unwrap_err();
    let begin = "pool \"default\" has 16 different";
    assert!(error.code == Code::Unavailable && error.message.starts_with(begin), "{error:?}");
    let same = Hand::new(&stack, vec![ToolSpec::named("tool-7")]).await;
    assert_eq!(same.consumer, "default+8", "the same tools are no new set");
    stack.finish().await;
}

/// One that takes all sets would leave the others without any.
#[tokio::test]
async fn an_identity_has_at_most_four_sets_of_tools_where_others_have_one() {
    let stack = Stack::start_pinned().await;
    let _other = Hand::new(&stack, vec![ToolSpec::named("other")]).await;
    let of_greedy = async |tool: &str| {
        let hand = Hand::of_identity(&stack, "greedy").await;
        let registered = hand.try_register(vec![ToolSpec::named(tool)]).await;
        (hand, registered)
    };
    let mut hands = Vec::new();
    for n in 0..4 {
        let (hand, registered) = of_greedy(&format!("tool-{n}")).await;
        registered.unwrap();
        hands.push(hand);
    }
    let error = of_greedy("tool-4").await.1.unwrap_err();
    let begin = "worker identity \"greedy\" has 4 different sets of tools in pool \"default\"";
    assert!(error.code == Code::Unavailable && error.message.starts_with(begin), "{error:?}");
    of_greedy("tool-3").await.1.expect("the same tools are no new set");
    // One of its own may change what it has.
    hands[0].try_register(vec![ToolSpec::named("tool-5")]).await.unwrap();
    Hand::new(&stack, vec![ToolSpec::named("another")]).await;
    stack.finish().await;
}
