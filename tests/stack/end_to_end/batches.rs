//! Batches: whatever becomes of one call, the client learns what became of each.

use redial_proto::{
    Code, Submission,
    SubmitStatus::{Accepted, Refused},
};
use redial_queue::QueueError;
use redial_test_stack::{Stack, arguments};
use redial_tools::Tool;
use serde_json::json;

/// What is said about all refusals together does not fit into one message. The calls are on record by then, so an error instead of
/// the answer would have them sent again.
#[tokio::test]
async fn an_answer_that_is_too_large_is_shortened_and_names_every_call() {
    let mut stack = Stack::start().await;
    let fields: Vec<String> = (0..60).map(|n| format!("a_field_that_is_needed_{n}")).collect();
    let properties: serde_json::Map<_, _> =
        fields.iter().map(|name| (name.clone(), json!({"type": "integer"}))).collect();
    let mut strict = Tool::echo();
    strict.spec.name = "strict".to_owned();
    strict.spec.parameters = json!({"type": "object", "required": fields, "properties": properties});
    stack.work(vec![Tool::echo(), strict]).await;
    let mut batch = vec![Submission::new("strict", arguments(json!({}))); 1_000];
    batch[0] = Submission::new("echo", arguments(json!({"n": 0})));
    batch[999] = Submission::new("echo", arguments(json!({"n": 999})));
    let results = stack.try_submit_all(&batch).await.unwrap();
    assert_eq!(results.len(), 1_000);
    for n in [0, 999] {
        assert_eq!(results[n].status, Accepted);
        assert_eq!(stack.output(results[n].call.unwrap()).await, format!(r#"{{"n":{n}}}"#));
    }
    for result in &results[1..999] {
        let code = result.error.as_ref().unwrap().code;
        assert_eq!((result.status, code), (Refused, Code::InvalidArguments));
    }
    assert!(
        results[1..999].iter().any(|result| result.feedback.is_none()),
        "all of it would fit: the test is for nothing"
    );
    let view = stack.get(results[1].call.unwrap()).await;
    assert!(view.feedback.is_some() && view.details.len() == 60, "all of it is on record: {view:?}");
    batch.push(batch[0].clone());
    let Err(QueueError::Api(error)) = stack.try_submit_all(&batch).await else { panic!("it is an error as a whole") };
    assert!(error.code == Code::TooLarge && error.message.contains("calls holds 1001 submissions; allowed: 1000"));
    let evidence = stack.finish().await;
    assert_eq!(evidence.calls.len(), 1_000);
}
