//! Cancels and deadlines.

use redial_proto::{AgentSpec, Budgets, TaskCode, TaskState, ToolEffect};
use redial_worker::{Context, Tool};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::fixture::{Fixture, agent, answer, book_tool, calls, says, task};

/// A tool that runs until it is stopped.
fn endless() -> (Tool, &'static Semaphore) {
    let started: &'static Semaphore = Box::leak(Box::new(Semaphore::new(0)));
    let run = move |_: Context, _: serde_json::Map<String, Value>| async move {
        started.add_permits(1);
        std::future::pending::<&str>().await
    };
    (Tool::new("endless", run).effect(ToolEffect::Idempotent), started)
}

#[tokio::test]
async fn a_cancelled_task_ends_and_the_conversation_continues() {
    let (tool, started) = endless();
    let fixture = Fixture::open(vec![tool, book_tool()]).await;
    let both = [("endless", "{}"), ("book", r#"{"departure_city":"Rome","seats":1}"#)];
    fixture.small([calls("", &both), says("fresh start")]);
    let mut one = task("go", agent());
    one.conversation = Some("c".into());
    let id = fixture.stack.task(&one).await;
    started.acquire().await.unwrap().forget();
    assert_eq!(fixture.stack.cancel_task(id).await, TaskState::Running);
    let report = fixture.stack.task_ended(id).await;
    assert_eq!((report.task.state, report.task.code), (TaskState::Cancelled, Some(TaskCode::Cancelled)));
    assert_eq!(fixture.stack.cancel_task(id).await, TaskState::Cancelled, "again: nothing changes");
    one.input = "again".into();
    let id = fixture.stack.task(&one).await;
    assert_eq!(answer(&fixture.stack.task_ended(id).await), "fresh start");
    let roles = fixture.seen(1);
    assert_eq!(super::fixture::roles(&roles), ["system", "user", "assistant", "tool", "tool", "user"]);
    fixture.close().await;
}

#[tokio::test]
async fn the_time_limit_stops_the_tools_and_asks_for_a_last_answer() {
    let (tool, started) = endless();
    let fixture = Fixture::open(vec![tool]).await;
    fixture.small([calls("", &[("endless", "{}")]), says("It took too long.")]);
    let agent = AgentSpec { budgets: Budgets { seconds: 5, ..Budgets::default() }, ..agent() };
    let id = fixture.stack.task(&task("go", agent)).await;
    let report = fixture.stack.task_ended(id).await;
    started.acquire().await.unwrap().forget();
    assert_eq!((report.task.state, report.task.code), (TaskState::Failed, Some(TaskCode::TimeExhausted)));
    assert_eq!(report.task.answer.as_deref(), Some("It took too long."));
    fixture.close().await;
}
