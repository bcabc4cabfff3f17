//! Scenarios of tasks. Their model gives the replies of the scenario in order, in each task.

use redial_proto::{AgentRef, AgentSpec, TaskId, TaskState, TaskSubmission, ToolEffect, TurnReply};
use redial_test_stack::{ToolEvent, scripted_tool, unique_path};
use serde_json::{Value, json};

use super::fixture::Fixture;
use crate::http::model::{asks, model, says};

/// What the model asks for.
fn call(arguments: Value) -> TurnReply {
    asks([("tool", arguments)])
}

/// A dispatcher, and a worker with a tool and a model with these replies.
async fn set(fixture: &mut Fixture, replies: Vec<TurnReply>) {
    fixture.dispatch().await;
    fixture.work(8, vec![scripted_tool("tool", ToolEffect::Read, &fixture.stack.ledger)]).await;
    fixture.play(model("model", replies)).await;
}

async fn task(fixture: &Fixture) -> TaskId {
    let agent = AgentSpec { tools: vec!["tool".to_owned()], ..AgentSpec::new("model") };
    let submission = TaskSubmission {
        conversation: Some("talk".to_owned()),
        ..TaskSubmission::new("go", AgentRef::Inline(Box::new(agent)))
    };
    fixture.stack.task(&submission).await
}

/// One call, one answer.
pub(crate) async fn one_call(fixture: &mut Fixture) {
    set(fixture, vec![call(json!({})), says("done")]).await;
    let id = task(fixture).await;
    fixture.ends(fixture.stack.task_is(id, TaskState::is_terminal)).await;
}

/// Of two calls of a turn the second ends first.
pub(crate) async fn parallel_calls(fixture: &mut Fixture) {
    let hold = unique_path("hold");
    let replies = vec![asks([("tool", json!({"hold": hold})), ("tool", json!({"n": 2}))]), says("done")];
    set(fixture, replies).await;
    let id = task(fixture).await;
    fixture.stack.counts(1, "messages WHERE role = 'tool'").await;
    std::fs::write(&hold, "").unwrap();
    fixture.ends(fixture.stack.task_is(id, TaskState::is_terminal)).await;
}

/// While a task runs, the user asks for another one in the same conversation.
pub(crate) async fn two_tasks(fixture: &mut Fixture) {
    let hold = unique_path("hold");
    set(fixture, vec![call(json!({"hold": hold})), says("done")]).await;
    let first = task(fixture).await;
    fixture.stack.ledger.reaches(ToolEvent::Started, 1).await;
    let second = task(fixture).await;
    if fixture.mutated {
        fixture.stack.task_is(second, |state| state != TaskState::Waiting).await;
    }
    std::fs::write(&hold, "").unwrap();
    for id in [first, second] {
        fixture.ends(fixture.stack.task_is(id, TaskState::is_terminal)).await;
    }
}

/// A model asks for a call that failed in an earlier task of its conversation.
pub(crate) async fn repeated_failure(fixture: &mut Fixture) {
    set(fixture, vec![call(json!({"fail": "auth"})), says("no")]).await;
    for _ in 0..2 {
        let id = task(fixture).await;
        fixture.stack.task_is(id, TaskState::is_terminal).await;
    }
}
