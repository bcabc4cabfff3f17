//! What users try against other tenants.

use futures_util::{StreamExt as _, stream};
use redial_proto::{
    CallId, CallView, GetRequest, Language, Submission, SubmitResult, SubmitStatus, TaskGet, TaskReport, TaskResult,
    TaskSubmission, UserRole,
    subjects::{self, Intake, Verb},
};
use redial_queue::{Queue, QueueError};
use redial_testkit::{arguments, until};
use serde_json::{Value, json};

use super::world::{ANSWER, SECRET, World, is_refused};

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

/// All of these requests, none of which may reach anybody.
async fn nobody_hears(queue: &Queue, requests: impl Iterator<Item = (UserRole, Verb)>, body: &Value) {
    let ask = async |(role, verb): (UserRole, Verb)| {
        let answer: Result<Value, QueueError> = queue.ask_as(role, verb, body, ANSWER).await;
        assert!(is_refused(&answer), "{role} {verb:?}: {answer:?}");
    };
    // nats-server tells refusals apart from replies, and its client keeps only so many of them.
    stream::iter(requests).map(ask).buffered(32).collect::<Vec<()>>().await;
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

#[tokio::test]
async fn a_user_reaches_nothing_of_another_tenant_by_any_verb() {
    let world = World::start().await;
    let alice = world.user("acme.alice").await;
    let secret = call(&alice, "k").await;
    // With its own subjects the dispatcher knows no such call; with those of others the server lets nothing through.
    let bob = world.user("globex.bob").await;
    let error = view(&bob, secret).await.unwrap_err().to_string();
    assert!(error.contains("is on record [call_not_found]"), "{error}");
    let posing = world.posing("globex.bob", "acme", "alice").await;
    let body = json!({"call": secret, "calls": [secret], "tool": "echo", "arguments": {}, "task": secret});
    let all = Verb::ALL.iter().flat_map(|&verb| UserRole::ALL.map(|role| (role, verb)));
    nobody_hears(&posing, all, &body).await;
    let before = world.count("calls WHERE tenant = 'acme'").await;
    let put = posing.put_intake(Intake::Calls, br#"{"tool":"echo","arguments":{}}"#.as_slice().into(), None).await;
    assert!(put.is_err());
    assert_eq!(world.count("calls WHERE tenant = 'acme'").await, before);
    world.stop().await;
}

#[tokio::test]
async fn a_user_hears_nothing_of_another_tenant() {
    let world = World::start().await;
    let mut rita = world.raw("globex.rita").await;
    for subject in [
        ">",
        "redial.>",
        "redial.events.>",
        "redial.events.acme.>",
        "redial.events.*.>",
        "_INBOX.>",
        "_INBOX_client.>",
        "_INBOX_client.acme.alice.>",
        "redial.jobs.>",
        "redial.worker.>",
        "redial.results.>",
        "redial.intake.>",
        "$JS.>",
    ] {
        rita.subscribe(subject).await;
    }
    rita.subscribe("redial.events.globex.>").await;
    let alice = world.user("acme.alice").await;
    for n in 0..5 {
        call(&alice, &format!("k{n}")).await;
    }
    task(&alice, SECRET).await;
    // Her own tenant's event arrives after all of those.
    let bob = world.user("globex.bob").await;
    let own = call(&bob, "own").await;
    let heard = rita.wait_for("an event", |message| message.subject.contains(&own.to_string())).await;
    assert_eq!(heard.subject, subjects::call_events("globex", own));
    assert!(
        rita.messages.iter().all(|message| message.subject.starts_with("redial.events.globex.")),
        "{:?}",
        rita.messages
    );
    world.stop().await;
}

#[tokio::test]
async fn a_role_that_a_user_does_not_have_reaches_nobody() {
    let world = World::start().await;
    let bob = world.user("globex.bob").await;
    let own = call(&bob, "k").await;
    let rita = world.user("globex.rita").await;
    assert!(view(&rita, own).await.is_ok(), "she may read");
    let body = json!({"call": own, "calls": [own], "tool": "echo", "arguments": {}});
    let others = || Verb::ALL.iter().filter(|verb| !verb.roles().contains(&UserRole::Read));
    // Nor do verbs that her own role does not allow.
    let roles = |&verb: &Verb| verb.roles().iter().chain([&UserRole::Read]).map(move |&role| (role, verb));
    nobody_hears(&rita, others().flat_map(roles), &body).await;
    world.stop().await;
}
