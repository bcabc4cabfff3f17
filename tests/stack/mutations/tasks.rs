//! Scenarios of tasks. Their model gives the replies of the scenario in order.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use futures_util::{FutureExt, future::BoxFuture};
use redial_proto::{
    AgentRef, AgentSpec, ReplyCall, TaskId, TaskState, TaskSubmission, ToolEffect, ToolSpec, TurnReply,
};
use redial_test_stack::{ToolEvent, scripted_tool, unique_path};
use redial_tools::{Context, Handler, Tool, ToolResult};
use serde_json::{Value, json, value::RawValue};

use super::fixture::Fixture;

struct Model(Arc<Mutex<VecDeque<TurnReply>>>);

impl Handler for Model {
    fn run(&self, _: Context, _: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        let reply = self.0.lock().unwrap().pop_front().expect("the scenario has a reply for every turn");
        async move { Ok(serde_json::value::to_raw_value(&reply).unwrap()) }.boxed()
    }
}

fn says(text: &str) -> TurnReply {
    TurnReply { text: Some(text.to_owned()), ..TurnReply::default() }
}

fn asks<const N: usize>(calls: [Value; N]) -> TurnReply {
    let call = |arguments: Value| ReplyCall { name: "tool".to_owned(), arguments: arguments.to_string() };
    TurnReply { calls: calls.into_iter().map(call).collect(), ..TurnReply::default() }
}

/// A dispatcher, and a worker with a tool and a model with these replies.
async fn set(fixture: &mut Fixture, replies: Vec<TurnReply>) {
    fixture.dispatch().await;
    fixture.work(8, vec![scripted_tool("tool", ToolEffect::Read, &fixture.stack.ledger)]).await;
    fixture.play(Tool::from_handler(ToolSpec::named("model"), Model(Arc::new(Mutex::new(replies.into()))))).await;
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
    set(fixture, vec![asks([json!({})]), says("done")]).await;
    let id = task(fixture).await;
    fixture.ends(fixture.stack.task_is(id, TaskState::is_terminal)).await;
}

/// Of two calls of a turn the second ends first.
pub(crate) async fn parallel_calls(fixture: &mut Fixture) {
    let hold = unique_path("hold");
    let replies = vec![asks([json!({"hold": hold}), json!({"n": 2})]), says("done")];
    set(fixture, replies).await;
    let id = task(fixture).await;
    fixture.stack.counts(1, "messages WHERE role = 'tool'").await;
    std::fs::write(&hold, "").unwrap();
    fixture.ends(fixture.stack.task_is(id, TaskState::is_terminal)).await;
}

/// While a task runs, the user asks for another one in the same conversation.
pub(crate) async fn two_tasks(fixture: &mut Fixture) {
    let hold = unique_path("hold");
    set(fixture, vec![asks([json!({"hold": hold})]), says("one"), says("two")]).await;
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
    let call = || asks([json!({"fail": "auth"})]);
    set(fixture, vec![call(), says("no"), call(), says("still no")]).await;
    for _ in 0..2 {
        let id = task(fixture).await;
        fixture.stack.task_is(id, TaskState::is_terminal).await;
    }
}
