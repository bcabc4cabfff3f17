//! How tasks continue and end.

use redial_proto::{TaskState, ToolEffect};
use redial_test_stack::{Stack, scripted_tool, until};
use serde_json::json;

use super::script::{Model, agent, calls, says, task};

#[tokio::test]
async fn long_descriptions_leave_room_for_the_conversation() {
    let mut stack = Stack::start().await;
    let model = Model::playing("small", vec![says("I read them.")]);
    let wordy =
        |n: u32| scripted_tool(&format!("wordy_{n}"), ToolEffect::Read, &stack.ledger).describe("word ".repeat(10_000));
    let tools: Vec<_> = (0..6).map(wordy).collect();
    stack.work(tools).await;
    stack.play_models(vec![model.tool()]).await;
    let report = stack.task_ended(stack.task(&task("Hello", agent("small", &["wordy_*"]))).await).await;
    assert_eq!(report.task.answer.as_deref(), Some("I read them."));
    stack.finish().await;
}

#[tokio::test]
async fn a_task_that_was_not_woken_is_found() {
    let mut stack = Stack::start().await;
    let model = Model::playing("small", vec![calls([("act", json!({"hold": "/nowhere/at/all"}))])]);
    let act = scripted_tool("act", ToolEffect::Idempotent, &stack.ledger);
    stack.play_models(vec![model.tool()]).await;
    stack.work(vec![act]).await;
    let id = stack.task(&task("Do it.", agent("small", &["act"]))).await;
    until("the tool runs", async || (!stack.ledger.entries().is_empty()).then_some(())).await;
    // As another dispatcher would, and then die.
    let cancel = "INSERT INTO task_inbox (task_id, kind) VALUES ($1, 'cancel')";
    sqlx::query(cancel).bind(id.0).execute(stack.db()).await.unwrap();
    assert_eq!(stack.task_ended(id).await.task.state, TaskState::Cancelled);
    stack.finish().await;
}
