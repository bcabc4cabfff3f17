//! Schemas that would keep a dispatcher busy for hours.

use redial_proto::{Code, ToolSpec};
use redial_test_stack::Stack;
use serde_json::{Value, json};

use super::by_hand::Hand;

/// Each level refers to the next one twice: 2^34 schemas apply to one value.
fn bomb() -> Value {
    let next = |n: usize| json!({"$ref": format!("#/$defs/d{}", n + 1)});
    let mut definitions: serde_json::Map<String, Value> =
        (0..34).map(|n| (format!("d{n}"), json!({"allOf": [next(n), next(n)]}))).collect();
    definitions.insert("d34".to_owned(), json!({"properties": {"a": {"type": "integer"}}}));
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

#[tokio::test]
async fn a_schema_that_multiplies_is_refused_at_registration() {
    let stack = Stack::start().await;
    let rogue = Hand::of_identity(&stack, "rogue").await;
    for (parameters, says) in [
        (bomb(), "at most 32 are allowed"),
        (json!({"description": "x".repeat(300_000)}), "at most 262144 are allowed"),
    ] {
        let bad = ToolSpec { parameters, ..ToolSpec::named("bad") };
        let error = rogue.try_register(vec![ToolSpec::named("good"), bad]).await.unwrap_err();
        assert_eq!(error.code, Code::InvalidManifest);
        assert!(error.message.contains("bad") && error.message.contains(says), "{error}");
    }
    // One bad tool keeps the others of its message away: a worker has all of its tools or says why not.
    assert_eq!(stack.count("tools").await, 0);
    stack.finish().await;
}
