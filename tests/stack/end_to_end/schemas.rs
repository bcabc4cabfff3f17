//! Schemas that would keep a dispatcher busy for hours, and schemas that change while calls wait.

use redial_proto::{
    CallState, Code, ErrorClass, Failure, RetryOverride, Submission, ToolEffect, ToolList, ToolSpec, subjects::Verb,
};
use redial_test_stack::{Stack, arguments};
use serde_json::{Value, json};

use super::{by_hand::Hand, fixture::ask};

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

/// A tool that takes a number of days as this type.
fn weather(days: &str) -> ToolSpec {
    let parameters = json!({"type": "object", "properties": {"days": {"type": days}}});
    ToolSpec { parameters, effect: ToolEffect::Idempotent, ..ToolSpec::named("weather") }
}

#[tokio::test]
async fn arguments_of_a_retry_are_checked_again_once_its_tool_has_another_schema() {
    let stack = Stack::start().await;
    let user = stack.user("default", "alice").await;
    let version = async || {
        let tools: ToolList = ask(&user, Verb::ToolList, &json!({})).await.unwrap();
        tools.tools[0].version.clone()
    };
    let mut worker = Hand::new(&stack, vec![weather("integer")]).await;
    let then = version().await;
    let retry = RetryOverride { initial_ms: Some(1), cap_ms: Some(1), ..RetryOverride::default() };
    let submission = |orders| Submission { retry: Some(retry), ..Submission::new("weather", arguments(orders)) };
    let (fits, misfits) = (json!({"city": "Paris"}), json!({"days": 2}));
    // Too large to be in the answer to a claim.
    let large = json!({"days": 2, "note": "x".repeat(300 * 1024)});
    let calls = stack.call_all(&[fits, misfits, large].map(submission)).await;
    for _ in &calls {
        worker.granted().await;
    }
    for call in &calls {
        let failure = Failure::new(ErrorClass::Unavailable, "not now").without_effect();
        worker.report(*call, 1, Err(failure)).await;
    }
    assert!(worker.register(vec![weather("string")]).await.is_empty());
    let now = version().await;
    for _ in &calls {
        let job = worker.job().await;
        let grants = worker.claim(job.call, job.attempt).await;
        assert_eq!((job.attempt, grants.len()), (2, usize::from(job.call != calls[1])), "{:?}", job.call);
        if job.call == calls[2] {
            assert_eq!(worker.open(job.call, 2).await.unwrap_err().code, Code::WrongState);
        }
    }
    worker.report(calls[0], 2, Ok("1")).await;
    assert_eq!(stack.ended(calls[0]).await.state, CallState::Succeeded, "what still fits runs");
    for call in &calls[1..] {
        let view = stack.ended(*call).await;
        assert_eq!((view.state, view.attempts), (CallState::Failed, 2));
        assert_eq!((view.class, view.details[0].path.as_str()), (Some(ErrorClass::InvalidArguments), "/days"));
        let message = view.message.unwrap();
        assert!(then != now && message.contains(&then) && message.contains(&now), "{message}");
    }
    // A call that ended runs again with the arguments on record: they are checked, too.
    let again = stack.redrive(calls[1]).await.call.unwrap();
    let job = worker.job().await;
    assert_eq!((job.call, worker.claim(job.call, job.attempt).await.len()), (again, 0));
    assert_eq!(stack.ended(again).await.class, Some(ErrorClass::InvalidArguments));
    stack.finish().await;
}
