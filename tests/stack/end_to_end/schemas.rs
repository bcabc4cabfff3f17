//! Schemas that would keep a dispatcher busy for hours.

use std::time::Duration;

use futures_util::future::join_all;
use redial_proto::{
    ANY_POOL, CONTRACT, Code, Registered, Registration, Submission, SubmitResult, SubmitStatus, ToolEffect, ToolSpec,
    WorkerId, WorkerIdentity,
    subjects::{self, ControlVerb},
};
use redial_queue::QueueError;
use redial_testkit::{Stack, arguments};
use serde_json::{Value, json};

use super::{by_hand::Hand, fixture::with_tool};

fn tool(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec { parameters, effect: ToolEffect::Read, ..ToolSpec::named(name) }
}

/// Each level refers to the next one twice: 2^34 schemas apply to one value.
fn bomb() -> Value {
    let next = |n: usize| json!({"$ref": format!("#/$defs/d{}", n + 1)});
    let mut definitions: serde_json::Map<String, Value> =
        (0..34).map(|n| (format!("d{n}"), json!({"allOf": [next(n), next(n)]}))).collect();
    definitions.insert("d34".to_owned(), json!({"properties": {"a": {"type": "integer"}}}));
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

/// Applies itself to a member twice, so that the work doubles with each level of the arguments.
fn doubling(reference: &str) -> Value {
    let one = json!({"properties": {"a": {reference: "#here"}}});
    json!({"$anchor": "here", "$dynamicAnchor": "here", "type": "object", "allOf": [one, one],
        "properties": {"n": {"type": "integer"}}})
}

/// Nests so deep; the innermost value is wrong.
fn deep(levels: usize) -> Value {
    (0..levels).fold(json!({"n": "wrong"}), |inner, _| json!({"a": inner}))
}

async fn register(stack: &Stack, tools: Vec<ToolSpec>) -> Result<Registered, QueueError> {
    let identity = WorkerIdentity::of_name("rogue");
    let registration = Registration {
        contract: CONTRACT,
        host: None,
        worker: WorkerId::generate(&identity),
        started_at: chrono::Utc::now(),
        slots: 1,
        version: "1".to_owned(),
        tools,
        other_tools: std::collections::BTreeMap::new(),
    };
    let subject = subjects::control(&identity, ANY_POOL, ControlVerb::Register);
    stack.queue().request(&subject, &registration, Duration::from_secs(25)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_multiplies_is_refused_at_registration_and_others_go_on() {
    let stack = with_tool(ToolEffect::Read).await;
    let hand = Hand::new(&stack, Vec::new()).await;
    let attack = (0..10).map(|n| register(&stack, vec![tool(&format!("bomb-{n}"), bomb())]));
    let others = async {
        for n in 0..10 {
            hand.beat().await;
            let call = stack.call("tool", json!({"n": n})).await;
            assert_eq!(stack.output(call).await, r#"{"attempt":1}"#);
        }
    };
    let (refused, ()) = tokio::join!(join_all(attack), others);
    for error in refused {
        let Err(QueueError::Api(error)) = error else { panic!("{error:?}") };
        assert_eq!(error.code, Code::InvalidManifest);
        assert!(error.message.contains("bomb-") && error.message.contains("/$defs/d"), "{error}");
        assert!(error.message.contains("at most 32 are allowed"), "{error}");
    }
    let Err(QueueError::Api(error)) =
        register(&stack, vec![tool("good", json!({})), tool("huge", json!({"description": "x".repeat(300_000)}))])
            .await
    else {
        panic!("a schema that is too long")
    };
    assert!(error.message.contains("at most 262144 are allowed"), "{error}");
    // One bad tool keeps the others of its message away: a worker has all of its tools or says why not.
    let known: Vec<String> = sqlx::query_scalar("SELECT name FROM tools").fetch_all(stack.db()).await.unwrap();
    assert_eq!(known, ["tool"]);
    stack.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_that_double_the_work_with_each_level_hold_nobody_up() {
    let mut stack = with_tool(ToolEffect::Read).await;
    let tools = vec![tool("remembered", doubling("$ref")), tool("dynamic", doubling("$dynamicRef"))];
    register(&stack, tools).await.unwrap();
    let submit = async |tool: &str, value: Value| -> SubmitResult {
        stack.submit(&Submission::new(tool, arguments(value))).await
    };
    let attack = join_all((0..30).map(|n| submit(if n % 2 == 0 { "remembered" } else { "dynamic" }, deep(60))));
    let others = async {
        for n in 0..20 {
            let call = stack.call("tool", json!({"n": n})).await;
            assert_eq!(stack.output(call).await, r#"{"attempt":1}"#);
        }
    };
    let (refused, ()) = tokio::join!(attack, others);
    for (n, result) in refused.into_iter().enumerate() {
        assert_eq!(result.status, SubmitStatus::Refused, "{result:?}");
        let error = result.error.unwrap();
        let code = if n % 2 == 0 { Code::InvalidArguments } else { Code::InvalidManifest };
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(" steps"), "{error}");
    }
    // What is right runs at any depth, and few levels are described as always.
    let right = submit("remembered", (0..50).fold(json!({"n": 1}), |inner, _| json!({"a": inner}))).await;
    assert_eq!(right.status, SubmitStatus::Accepted);
    let wrong = submit("dynamic", deep(3)).await.error.unwrap();
    assert_eq!((wrong.code, wrong.details[0].path.as_str()), (Code::InvalidArguments, "/a/a/a/n"));
    stack.leaves_calls();
    stack.finish().await;
}
