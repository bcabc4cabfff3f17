//! The client with the types of the API.

use redial_api::{CallList, CallRecord, QueueList, Ran, WorkerList};
use redial_client::{Client, ClientError};
use redial_proto::{CallState, SubmitResult, ToolEffect, UserRole};
use redial_test_stack::{Stack, token, until};
use serde_json::json;

#[tokio::test]
async fn answers_are_typed_lists_are_followed_and_problems_are_errors() {
    let stack = Stack::with_tool(ToolEffect::Keyed).await;
    let gateway = stack.serve_http_with(|_| {}).await;
    let token = token(stack.queue(), &[UserRole::Submit, UserRole::Read]).await.text();
    let client = Client::new(&gateway.url, Some(&token), |_| None).unwrap();
    let mut calls = Vec::new();
    for n in 0..5 {
        let body = json!({"tool": "tool", "arguments": {"output": n.to_string()}});
        let accepted: SubmitResult = client.post("/v1/calls", &body).await.unwrap();
        calls.push(accepted.call.unwrap());
    }
    for call in &calls {
        let path = format!("/v1/calls/{call}");
        let record = async || client.get::<CallRecord>(&path).await.unwrap();
        until("the end of a call", async || record().await.view.state.is_terminal().then_some(())).await;
    }
    let last: CallRecord = client.get(&format!("/v1/calls/{}", calls[4])).await.unwrap();
    assert_eq!(
        (last.view.state, last.details.ran, last.details.effect),
        (CallState::Succeeded, Ran::Once, ToolEffect::Keyed)
    );
    assert_eq!(last.view.output.unwrap().get(), "4");
    assert_eq!((last.view.attempts_made.len(), last.details.arguments.get()), (1, r#"{"output":"4"}"#));

    let newest = |most| client.list::<CallList>("/v1/calls", &[("page_size", "2"), ("tool", "tool")], most);
    let listed = newest(usize::MAX).await.unwrap();
    calls.reverse();
    assert_eq!(listed.iter().map(|item| item.call).collect::<Vec<_>>(), calls, "in three pages");
    assert_eq!(newest(3).await.unwrap().len(), 3);
    assert_eq!(client.get::<WorkerList>("/v1/workers").await.unwrap().workers.len(), 1);
    assert_eq!(client.get::<QueueList>("/v1/queues?all=true").await.unwrap().queues.len(), 0, "nothing is open");

    let missing = client.get::<CallRecord>("/v1/calls/01a1f813-c80f-740d-a05c-89d86eeddd01").await.unwrap_err();
    let ClientError::Problem(problem) = missing else { panic!("{missing:?}") };
    assert_eq!((problem.status, problem.code.as_str()), (404, "call_not_found"));
    let forbidden = client.post::<SubmitResult>(&format!("/v1/calls/{}/redrive", calls[0]), &json!({})).await;
    assert!(matches!(&forbidden, Err(ClientError::Problem(problem)) if problem.status == 403), "{forbidden:?}");
    let elsewhere = client.get::<QueueList>("//example.org/v1/queues").await;
    assert!(matches!(elsewhere, Err(ClientError::Address(_))), "the token is for its gateway only");
    stack.finish().await;
}
