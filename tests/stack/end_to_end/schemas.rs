//! Schemas that would keep a dispatcher busy for hours.

use std::time::Duration;

use futures_util::future::join_all;
use redial_proto::{
    ANY_POOL, CONTRACT, Code, Registered, Registration, Submission, SubmitResult, SubmitStatus, ToolEffect, ToolSpec,
    WorkerId, WorkerIdentity,
    subjects::{self, ControlVerb},
};
use redial_queue::QueueError;
use redial_test_stack::Stack;
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
