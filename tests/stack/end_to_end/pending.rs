//! What waits for an operator is bounded, and what the operator saw is what is accepted.

use redial_proto::{Code, ToolSpec};
use redial_store::Purpose;
use redial_test_stack::Stack;

use super::{
    by_hand::Hand,
    pinning::{accept_seen, laxer, on_record, owner, pay},
};

/// Between the operator's look and the command, the identity registers something else; or the owner does.
#[tokio::test]
async fn what_the_operator_saw_is_what_is_accepted() {
    let stack = Stack::start_pinned().await;
    let mut owner = owner(&stack).await;
    let mut night = Hand::of_identity(&stack, "night").await;
    let seen = async || stack.store(Purpose::Audit).await.pending_tools().await.unwrap()[0].fingerprint.clone();
    night.register(vec![pay()]).await;
    let first = seen().await;
    night.register(vec![pay()]).await;
    assert_eq!(seen().await, first, "the same change");
    night.register(vec![laxer()]).await;
    let error = accept_seen(&stack, None, &first).await.unwrap_err();
    assert!(error.code == Code::WrongState && error.message.contains("nothing was accepted"), "{error}");
    assert_eq!((on_record(&stack).await, stack.count("pending_tools").await), (pay(), 1));
    let second = seen().await;
    let described = ToolSpec { description: "Pays.".to_owned(), ..pay() };
    assert!(owner.register(vec![described.clone()]).await.is_empty());
    let error = accept_seen(&stack, Some("night"), &second).await.unwrap_err();
    assert!(error.code == Code::WrongState && error.message.contains("nothing was accepted"), "{error}");
    assert_eq!(on_record(&stack).await, described);
    accept_seen(&stack, Some("night"), &seen().await).await.unwrap();
    assert_eq!(on_record(&stack).await, laxer());
    stack.finish().await;
}

#[tokio::test]
async fn an_identity_registers_only_so_many_tools() {
    let stack = Stack::start_pinned().await;
    let _owner = owner(&stack).await;
    let has = "INSERT INTO tools (name, spec, registered_by)
         SELECT 'tool_' || n, json_build_object('name', 'tool_' || n), 'rogue-1' FROM generate_series(1, 9999) AS n;
         INSERT INTO tool_identities (tool, identity) SELECT name, 'rogue' FROM tools WHERE name <> 'pay';
         INSERT INTO pending_tools (tool, identity, spec, reasons, worker)
         SELECT 'tool_' || n, 'rogue2', '{}', '{x}', 'rogue2-1' FROM generate_series(1, 1000) AS n";
    stack.execute(has).await;
    let mut rogue = Hand::of_identity(&stack, "rogue").await;
    assert!(rogue.register(vec![ToolSpec::named("last")]).await.is_empty());
    let error = rogue.try_register(vec![ToolSpec::named("one_more")]).await.unwrap_err();
    assert!(error.code == Code::Forbidden && error.message.contains("may have at most 10000 tools"), "{error}");
    assert_eq!(stack.count("tools WHERE name = 'one_more'").await, 0);
    assert!(rogue.register(vec![ToolSpec::named("last")]).await.is_empty(), "what it has stays");
    let waiting = Hand::of_identity(&stack, "rogue2").await;
    let error = waiting.try_register(vec![laxer()]).await.unwrap_err();
    assert!(error.code == Code::Forbidden && error.message.contains("at most 1000 tools that wait"), "{error}");
    assert_eq!(stack.count("pending_tools WHERE tool = 'pay'").await, 0);
    let mut other = Hand::of_identity(&stack, "other").await;
    assert_eq!(other.register(vec![laxer()]).await.len(), 1, "others are not kept from it");
    stack.finish().await;
}

#[tokio::test]
async fn pending_changes_are_bounded() {
    let stack = Stack::start_pinned().await;
    let _owner = owner(&stack).await;
    let many = "INSERT INTO pending_tools (tool, identity, spec, reasons, worker, since)
                SELECT 'pay', 'thief-' || n, '{}', '{}', 'thief', now() - interval '1 h' - n * interval '1 s'
                FROM generate_series(1, 10000) n";
    stack.execute(many).await;
    let mut night = Hand::of_identity(&stack, "night").await;
    night.register(vec![laxer()]).await;
    assert_eq!(stack.count("pending_tools").await, 10_000);
    assert_eq!(stack.count("pending_tools WHERE identity = 'night'").await, 1);
    assert_eq!(stack.count("pending_tools WHERE identity = 'thief-10000'").await, 0, "the oldest is gone");
    // A change that was dropped is registered again by whoever waits for it.
    stack.execute("DELETE FROM pending_tools").await;
    assert!(night.beat().await.register);
    stack.finish().await;
}
