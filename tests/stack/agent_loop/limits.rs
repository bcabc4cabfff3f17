//! Cancels, budgets and deadlines.

use redial_proto::{AgentSpec, Budgets, TaskCode, TaskState, ToolEffect};
use redial_test_stack::until;
use redial_worker::{Context, Tool};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::fixture::{Fixture, agent, answer, book_tool, calls, says, task};

/// A tool that waits until it is released or stopped.
fn gated() -> (Tool, &'static Semaphore, &'static Semaphore) {
    let started: &'static Semaphore = Box::leak(Box::new(Semaphore::new(0)));
    let gate: &'static Semaphore = Box::leak(Box::new(Semaphore::new(0)));
    let run = move |_: Context, _: serde_json::Map<String, Value>| async move {
        started.add_permits(1);
        gate.acquire().await.unwrap().forget();
        "passed"
    };
    (Tool::new("gated", run).effect(ToolEffect::Idempotent), started, gate)
}

#[tokio::test]
async fn a_cancelled_task_ends_and_the_conversation_continues() {
    let (tool, started, _) = gated();
    let fixture = Fixture::open(vec![tool, book_tool()]).await;
    let both = [("gated", "{}"), ("book", r#"{"departure_city":"Rome","seats":1}"#)];
    fixture.small([calls(&both), says("fresh start")]);
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
async fn a_task_that_waits_for_its_conversation_can_be_cancelled() {
    let (tool, started, gate) = gated();
    let fixture = Fixture::open(vec![tool]).await;
    fixture.small([calls(&[("gated", "{}")]), says("done")]);
    let mut one = task("first", agent());
    one.conversation = Some("c".into());
    let first = fixture.stack.task(&one).await;
    started.acquire().await.unwrap().forget();
    one.input = "second".into();
    let second = fixture.stack.task(&one).await;
    assert_eq!(fixture.stack.cancel_task(second).await, TaskState::Waiting);
    assert_eq!(fixture.stack.task_ended(second).await.task.state, TaskState::Cancelled);
    gate.add_permits(1);
    assert_eq!(answer(&fixture.stack.task_ended(first).await), "done");
    fixture.close().await;
}

#[tokio::test]
async fn the_time_limit_stops_the_tools_and_asks_for_a_last_answer() {
    let (tool, started, _) = gated();
    let fixture = Fixture::open(vec![tool]).await;
    fixture.small([calls(&[("gated", "{}")]), says("It took too long.")]);
    let agent = AgentSpec { budgets: Budgets { seconds: 5, ..Budgets::default() }, ..agent() };
    let report = fixture.run_as("go", agent).await;
    started.acquire().await.unwrap().forget();
    assert_eq!((report.task.state, report.task.code), (TaskState::Failed, Some(TaskCode::TimeExhausted)));
    assert_eq!(report.task.answer.as_deref(), Some("It took too long."));
    fixture.close().await;
}

#[tokio::test]
async fn a_single_call_of_a_task_can_be_cancelled() {
    let (tool, started, _) = gated();
    let fixture = Fixture::open(vec![tool]).await;
    fixture.small([calls(&[("gated", "{}")]), says("without it")]);
    let id = fixture.stack.task(&task("go", agent())).await;
    started.acquire().await.unwrap().forget();
    let call = until("the call is on record", async || fixture.calls_of(id).await.first().map(|call| call.0)).await;
    fixture.stack.cancel(call).await;
    assert_eq!(answer(&fixture.stack.task_ended(id).await), "without it");
    fixture.close().await;
}
