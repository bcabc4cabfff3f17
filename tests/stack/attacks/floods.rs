//! Users and workers that send as much as they can, or what stops those who read it.

use redial_proto::{
    Submission, SubmitResult, TaskGet, TaskReport, TaskResult, UserRole,
    subjects::{Intake, Verb},
};
use redial_test_stack::{arguments, until};
use serde_json::{Value, json};

use super::world::{ANSWER, World};

/// nats-server stores what a sender calls a status, and a client takes it for one of the server.
#[tokio::test]
async fn messages_with_a_status_hold_up_nobody_who_works_with_the_credentials_of_his_role() {
    let world = World::start().await;
    let flood = |subject: &str| {
        let header = "NATS/1.0 404 x\r\n\r\n";
        let one = format!("HPUB {subject} {} {}\r\n{header}{{}}\r\n", header.len(), header.len() + 2);
        one.repeat(1_000).into_bytes()
    };
    world.raw("worker.rogue").await.send_raw(&flood("redial.results.rogue")).await;
    world.raw("globex.bob").await.send_raw(&flood("redial.intake.globex.bob.submit.calls")).await;
    let alice = world.user("acme.alice").await;
    let mut events = alice.subscribe("redial.events.acme.calls.*").await.unwrap();
    alice.flush().await;
    let submission = Submission { notify: true, ..Submission::new("echo", arguments(json!({}))) };
    let result: SubmitResult = alice.ask(Verb::CallSubmit, &submission, ANSWER).await.unwrap();
    let event = tokio::time::timeout(ANSWER, events.next()).await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&event).unwrap()["call"], json!(result.call.unwrap()));
    let task = json!({"input": "Hello.", "agent": {"model": "small"}});
    let result: TaskResult = alice.ask_as(UserRole::Inline, Verb::TaskSubmit, &task, ANSWER).await.unwrap();
    let get = TaskGet { task: result.task.unwrap(), after_step: 0 };
    let answer = until("the task is answered", async || {
        let report: TaskReport = alice.ask(Verb::TaskGet, &get, ANSWER).await.unwrap();
        report.task.answer
    });
    assert_eq!(answer.await, "You said Hello.");
    let put = br#"{"tool":"echo","arguments":{},"key":"stream"}"#.as_slice();
    alice.put_intake(Intake::Calls, put.into(), None).await.unwrap();
    until("the call of the stream has ended", async || {
        (world.count("calls WHERE tenant = 'acme' AND key = 'stream' AND state = 'succeeded'").await == 1).then_some(())
    })
    .await;
    world.stop().await;
}
