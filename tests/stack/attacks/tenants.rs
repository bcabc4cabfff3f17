//! What users try against other tenants.

use redial_proto::{
    CallId, CallView, GetRequest, Language, Submission, SubmitResult, SubmitStatus, TaskGet, TaskReport, TaskResult,
    TaskSubmission, UserRole,
    subjects::{Intake, Verb},
};
use redial_queue::{Queue, QueueError};
use redial_test_stack::{arguments, until};
use serde_json::{Value, json};

use super::world::{ANSWER, SECRET, World};

async fn call(queue: &Queue, key: &str) -> CallId {
    let submission = Submission {
        key: Some(key.to_owned()),
        notify: true,
        ..Submission::new("echo", arguments(json!({"s": SECRET})))
    };
    let result: SubmitResult = queue.ask(Verb::CallSubmit, &submission, ANSWER).await.unwrap();
    assert_eq!(result.status, SubmitStatus::Accepted, "{:?}", result.error);
    result.call.unwrap()
}

async fn view(queue: &Queue, call: CallId) -> Result<CallView, QueueError> {
    queue.ask(Verb::CallGet, &GetRequest { call, language: Language::En }, ANSWER).await
}

async fn task(queue: &Queue, input: &str) -> TaskReport {
    let submission = json!({"input": input, "agent": {"model": "small"}, "conversation": "c"});
    let submission: TaskSubmission = serde_json::from_value(submission).unwrap();
    let result: TaskResult = queue.ask_as(UserRole::Inline, Verb::TaskSubmit, &submission, ANSWER).await.unwrap();
    let task = result.task.unwrap_or_else(|| panic!("{result:?}"));
    until("the task has ended", async || {
        let report: TaskReport = queue.ask(Verb::TaskGet, &TaskGet { task, after_step: 0 }, ANSWER).await.unwrap();
        report.task.state.is_terminal().then_some(report)
    })
    .await
}

#[tokio::test]
async fn everything_works_with_the_credentials_of_each_role() {
    let world = World::start().await;
    let (alice, bob) = (world.user("acme.alice").await, world.user("globex.bob").await);
    let mut events = alice.subscribe("redial.events.acme.>").await.unwrap();
    alice.flush().await;
    let done = call(&alice, "k").await;
    let event = tokio::time::timeout(ANSWER, events.next()).await.unwrap().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&event).unwrap()["call"], json!(done));
    assert!(view(&alice, done).await.unwrap().output.unwrap().get().contains(SECRET));
    let report = task(&alice, SECRET).await;
    let answer = report.task.answer.clone().unwrap_or_else(|| panic!("{report:?}"));
    assert!(answer.contains(SECRET));
    let answer = task(&bob, "What did I say?").await.task.answer.unwrap();
    assert!(!answer.contains(SECRET), "another conversation with the same id: {answer}");
    let body = br#"{"tool":"echo","arguments":{},"key":"stream"}"#.as_slice();
    bob.put_intake(Intake::Calls, body.into(), None).await.unwrap();
    until("the call of the stream is on record", async || {
        let found = world.count("calls WHERE tenant = 'globex' AND key = 'stream' AND submitted_by = 'bob'").await;
        (found == 1).then_some(())
    })
    .await;
    world.stop().await;
}
