//! Ways to submit a task.

use redial_proto::{AgentRef, SubmitStatus, TaskSubmission, subjects::Intake};
use redial_test_stack::{Stack, file, until};

use super::fixture::{Fixture, agent, answer, book_tool, says, task};

#[tokio::test]
async fn changes_of_the_file_of_agents_take_effect() {
    let listed = |name: &str| format!("[agents.{name}]\nmodel = \"small\"\ntools = [\"book\"]\n");
    let path = file("agents", &listed("travel"));
    let stack = Stack::start_with(|stack| stack.dispatcher.agents = Some(path.clone())).await;
    let fixture = Fixture::over(stack, vec![book_tool()]).await;
    fixture.small([says("hello")]);
    let named = |name: &str| TaskSubmission { agent: AgentRef::Name(name.into()), ..task("hi", agent()) };
    let id = fixture.stack.task(&named("travel")).await;
    let report = fixture.stack.task_ended(id).await;
    assert_eq!((answer(&report), report.task.agent.as_deref()), ("hello", Some("travel")));
    std::fs::write(&path, listed("hotels")).unwrap();
    // The file is checked at most once a second.
    let submitted = until("the new agent is known", async || {
        let result = fixture.stack.submit_task(&named("hotels")).await;
        (result.status == SubmitStatus::Accepted).then_some(result)
    });
    fixture.stack.task_ended(submitted.await.task.unwrap()).await;
    fixture.close().await;
}

#[tokio::test]
async fn the_intake_stream_accepts_tasks_and_keeps_invalid_messages() {
    let fixture = Fixture::open(vec![book_tool()]).await;
    fixture.small([says("from afar")]);
    let mut nats = fixture.stack.raw_nats().await;
    let body = serde_json::to_string(&task("go", agent())).unwrap();
    nats.publish(&fixture.stack.intake(Intake::Tasks), body.as_bytes()).await;
    nats.publish(&fixture.stack.intake(Intake::Tasks), b"no json").await;
    fixture.stack.counts(1, "tasks WHERE answer = 'from afar'").await;
    fixture.stack.counts(1, "dead_letters WHERE source = 'intake'").await;
    fixture.close().await;
}
