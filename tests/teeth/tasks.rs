//! What happens to tasks. Their model says what the scenario wants, one reply after the other.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use futures_util::{FutureExt, future::BoxFuture};
use redial_proto::{AgentRef, AgentSpec, Effect, ReplyCall, TaskId, TaskState, TaskSubmission, ToolSpec, TurnReply};
use redial_testkit::{Accusation, Deed, obedient, unique_path, until};
use redial_tools::{Answer, Context, Handler, Tool};
use serde_json::{Value, json, value::RawValue};

use crate::{
    bugs::Bug,
    stage::{Stage, Ways},
};

type Verdict = Vec<Accusation>;

struct Model(Arc<Mutex<VecDeque<TurnReply>>>);

impl Handler for Model {
    fn run(&self, _: Context, _: Box<RawValue>) -> BoxFuture<'static, Answer> {
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
async fn set(bug: &'static Bug, seeded: bool, replies: Vec<TurnReply>) -> (Stage, [Ways; 3]) {
    let (mut stage, dispatcher) = Stage::with_dispatcher(bug, seeded).await;
    let tools = stage.work(8, vec![obedient("tool", Effect::Read, &stage.stack.ledger)]).await;
    let model = Tool::from_handler(ToolSpec::named("model"), Model(Arc::new(Mutex::new(replies.into()))));
    let model = stage.play(model).await;
    (stage, [dispatcher, tools, model])
}

async fn task(stage: &Stage) -> TaskId {
    let agent = AgentSpec { tools: vec!["tool".to_owned()], ..AgentSpec::new("model") };
    let submission = TaskSubmission {
        input: "go".to_owned(),
        agent: AgentRef::Inline(Box::new(agent)),
        conversation: Some("talk".to_owned()),
        key: None,
        tenant: None,
    };
    stage.stack.task(&submission).await
}

/// One call, one answer.
pub(crate) async fn one_call(bug: &'static Bug, seeded: bool) -> Verdict {
    let (stage, _ways) = set(bug, seeded, vec![asks([json!({})]), says("done")]).await;
    let id = task(&stage).await;
    stage.ends(stage.stack.task_is(id, TaskState::is_terminal)).await;
    stage.judge().await
}

/// Of two calls of a turn the second ends first.
pub(crate) async fn parallel_calls(bug: &'static Bug, seeded: bool) -> Verdict {
    let hold = unique_path("hold");
    let replies = vec![asks([json!({"hold": hold}), json!({"n": 2})]), says("done")];
    let (stage, _ways) = set(bug, seeded, replies).await;
    let id = task(&stage).await;
    until("one call is answered", async || {
        let answers = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM messages WHERE role = 'tool'");
        (answers.fetch_one(stage.stack.db()).await.unwrap() == 1).then_some(())
    })
    .await;
    std::fs::write(&hold, "").unwrap();
    stage.ends(stage.stack.task_is(id, TaskState::is_terminal)).await;
    stage.judge().await
}

/// While a task runs, the user asks for another one in the same conversation.
pub(crate) async fn two_tasks(bug: &'static Bug, seeded: bool) -> Verdict {
    let hold = unique_path("hold");
    let (stage, _ways) = set(bug, seeded, vec![asks([json!({"hold": hold})]), says("one"), says("two")]).await;
    let first = task(&stage).await;
    stage.stack.ledger.reaches(Deed::Started, 1).await;
    let second = task(&stage).await;
    if seeded {
        stage.stack.task_is(second, |state| state != TaskState::Waiting).await;
    }
    std::fs::write(&hold, "").unwrap();
    for id in [first, second] {
        stage.ends(stage.stack.task_is(id, TaskState::is_terminal)).await;
    }
    stage.judge().await
}

/// A model asks for a call that failed in an earlier task of its conversation.
pub(crate) async fn repeated_failure(bug: &'static Bug, seeded: bool) -> Verdict {
    let call = || asks([json!({"fail": "auth"})]);
    let (stage, _ways) = set(bug, seeded, vec![call(), says("no"), call(), says("still no")]).await;
    for _ in 0..2 {
        let id = task(&stage).await;
        stage.stack.task_is(id, TaskState::is_terminal).await;
    }
    stage.judge().await
}
