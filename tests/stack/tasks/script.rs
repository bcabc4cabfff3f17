//! A model that plays a script.

use std::sync::{Arc, Mutex};

use futures_util::{FutureExt, future::BoxFuture};
use redial_proto::{
    AgentRef, AgentSpec, Failure, Language, ReplyCall, TaskId, TaskSubmission, ToolSpec, TurnReply, TurnRequest,
};
use redial_records::NewTask;
use redial_tools::{Context, Handler, Tool, ToolResult};
use serde_json::{Value, value::RawValue};

/// What a model says to a request.
type Says = Arc<dyn Fn(&TurnRequest) -> Result<TurnReply, Failure> + Send + Sync>;

/// A scripted model, and everything that it was asked.
#[derive(Clone)]
pub(crate) struct Model {
    name: String,
    says: Says,
    asked: Arc<Mutex<Vec<TurnRequest>>>,
}

impl Model {
    pub(crate) fn new(
        name: &str,
        says: impl Fn(&TurnRequest) -> Result<TurnReply, Failure> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.to_owned(), says: Arc::new(says), asked: Arc::default() }
    }

    /// One reply for each turn.
    pub(crate) fn playing(name: &str, replies: Vec<TurnReply>) -> Self {
        Self::new(name, move |request| Ok(replies[usize::try_from(request.turn).unwrap() - 1].clone()))
    }

    pub(crate) fn tool(&self) -> Tool {
        Tool::from_handler(ToolSpec::named(&self.name), self.clone())
    }

    /// What it was asked for a turn.
    pub(crate) fn asked(&self, turn: u32) -> TurnRequest {
        self.asked.lock().unwrap().iter().find(|request| request.turn == turn).unwrap().clone()
    }
}

impl Handler for Model {
    fn run(&self, context: Context, arguments: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        let model = self.clone();
        async move {
            let request: TurnRequest = serde_json::from_str(arguments.get()).unwrap();
            assert_eq!(context.task, Some(request.task));
            model.asked.lock().unwrap().push(request.clone());
            let reply = (model.says)(&request)?;
            Ok(serde_json::value::to_raw_value(&reply).unwrap())
        }
        .boxed()
    }
}

/// A tool that always gives the same result.
pub(crate) struct Always(pub(crate) String);

impl Handler for Always {
    fn run(&self, _: Context, _: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        let answer = RawValue::from_string(self.0.clone()).unwrap();
        async { Ok(answer) }.boxed()
    }
}

pub(crate) fn says(text: &str) -> TurnReply {
    TurnReply { text: Some(text.to_owned()), ..TurnReply::default() }
}

pub(crate) fn calls<const N: usize>(calls: [(&str, Value); N]) -> TurnReply {
    let call = |(name, arguments): (&str, Value)| {
        let text = arguments.as_str().map(str::to_owned);
        ReplyCall { name: name.to_owned(), arguments: text.unwrap_or_else(|| arguments.to_string()) }
    };
    TurnReply { calls: calls.into_iter().map(call).collect(), ..TurnReply::default() }
}

pub(crate) fn agent(model: &str, tools: &[&str]) -> AgentSpec {
    AgentSpec { tools: tools.iter().map(|tool| (*tool).to_owned()).collect(), ..AgentSpec::new(model) }
}

pub(crate) fn task(input: &str, agent: AgentSpec) -> TaskSubmission {
    TaskSubmission::new(input, AgentRef::Inline(Box::new(agent)))
}

/// A task of the model `small`, in a conversation of its own.
pub(crate) fn new_task(conversation: &str) -> NewTask {
    NewTask {
        submitted_by: None,
        id: TaskId::generate(),
        tenant: "default".to_owned(),
        conversation: conversation.to_owned(),
        key: None,
        content: None,
        agent: None,
        model: "small".to_owned(),
        language: Language::En,
        spec: serde_json::to_string(&agent("small", &[])).unwrap(),
        input: "go".to_owned(),
        metadata: std::collections::BTreeMap::new(),
        traceparent: None,
    }
}
