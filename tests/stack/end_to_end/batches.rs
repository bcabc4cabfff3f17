//! Batches: whatever becomes of one call, the client learns what became of each.

use redial_proto::{
    Code, Submission, SubmitBatchReply,
    SubmitStatus::{self, Accepted, Refused, Rejected},
    subjects::Verb,
};
use redial_queue::QueueError;
use redial_test_stack::{Stack, arguments};
use redial_tools::Tool;
use serde_json::json;

use super::with_echo;

#[tokio::test]
async fn an_invalid_item_affects_no_other_of_its_batch() {
    let stack = with_echo().await;
    let mut nats = stack.raw_nats().await;
    let batch = r#"{"calls":[{"tool":"echo","arguments":{"n":1}},7,{"tool":"echo"},{"tool":"ehco","arguments":{}},
                             {"tool":"echo","arguments":{"n":2}}]}"#;
    let reply = nats.request(&stack.subject(Verb::CallSubmit), batch.as_bytes()).await;
    let results = serde_json::from_slice::<SubmitBatchReply>(&reply).unwrap().results;
    let status: Vec<SubmitStatus> = results.iter().map(|result| result.status).collect();
    assert_eq!(status, [Accepted, Rejected, Rejected, Refused, Accepted]);
    assert_eq!(stack.output(results[0].call.unwrap()).await, r#"{"n":1}"#);
    assert_eq!(stack.output(results[4].call.unwrap()).await, r#"{"n":2}"#);
    let too_many = vec![Submission::new("echo", arguments(json!({}))); 1_001];
    let Err(QueueError::Api(error)) = stack.try_submit_all(&too_many).await else {
        panic!("it is an error as a whole")
    };
    assert_eq!(error.code, Code::TooLarge);
    assert!(error.message.contains("calls holds 1001 submissions; allowed: 1000"), "{error}");
    stack.finish().await;
}

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
    let evidence = stack.finish().await;
    assert_eq!(evidence.calls.len(), 1_000);
}
