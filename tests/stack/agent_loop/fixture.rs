//! A stack that runs tasks, with scripted models behind HTTP.

use std::time::Duration;

use redial_proto::{
    AgentRef, AgentSpec, CallId, RetryPolicy, TaskId, TaskReport, TaskState, TaskSubmission, ToolEffect, TurnRequest,
};
use redial_store::Purpose;
use redial_test_stack::{Reply, ScriptedHttp, Stack, file};
pub(crate) use redial_test_stack::{calls, says};
use redial_worker::{Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// A turn or a tool runs again if everything stands still for that long.
const LEASE: Duration = Duration::from_secs(15);

pub(crate) struct Fixture {
    pub(crate) stack: Stack,
    pub(crate) server: ScriptedHttp,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Trip {
    departure_city: String,
    #[schemars(range(min = 1, max = 5))]
    seats: u8,
}

async fn book(trip: Trip) -> Result<Value, ToolError> {
    if trip.departure_city == "Mars" {
        return Err(ToolError::invalid("/departure_city", "served", &trip.departure_city, "a city on Earth"));
    }
    Ok(json!({"booked": trip.departure_city, "seats": trip.seats}))
}

/// `book`: trips from everywhere but Mars.
pub(crate) fn book_tool() -> Tool {
    let at_once = RetryPolicy { initial_ms: 1, cap_ms: 1, ..RetryPolicy::default() };
    Tool::new("book", book).describe("Books a trip.").effect(ToolEffect::Idempotent).retry(at_once)
}

/// An agent of the small model with every tool.
pub(crate) fn agent() -> AgentSpec {
    AgentSpec { tools: vec!["*".into()], system: "You book trips.".into(), ..AgentSpec::new("small") }
}

pub(crate) fn task(input: &str, agent: AgentSpec) -> TaskSubmission {
    TaskSubmission::new(input, AgentRef::Inline(Box::new(agent)))
}

impl Fixture {
    /// Starts everything with these tools.
    pub(crate) async fn open(tools: Vec<Tool>) -> Self {
        Self::over(Stack::start_leasing(LEASE).await, tools).await
    }

    pub(crate) async fn over(mut stack: Stack, tools: Vec<Tool>) -> Self {
        let server = ScriptedHttp::start().await;
        let model = format!(
            "[models.small]\nprovider = \"openai\"\nmodel = \"scripted-1\"\nbase_url = \"{}\"\nstream = false\n\
             input_price = 1.0\noutput_price = 10.0\n",
            server.url("/small")
        );
        stack.work(tools).await;
        stack.serve_models(&file("models", &model)).await;
        Self { stack, server }
    }

    /// The answers of the small model in order; the last one is repeated.
    pub(crate) fn small(&self, replies: impl IntoIterator<Item = Reply>) {
        self.server.script("/small/chat/completions", replies);
    }

    /// Runs a task of the default agent to its end.
    pub(crate) async fn run(&self, input: &str) -> TaskReport {
        let id = self.stack.task(&task(input, agent())).await;
        self.stack.task_ended(id).await
    }

    /// The messages of the n-th request to the models, from 0.
    pub(crate) fn seen(&self, n: usize) -> Vec<Value> {
        self.body(n)["messages"].as_array().unwrap().clone()
    }

    pub(crate) fn body(&self, n: usize) -> Value {
        serde_json::from_slice(&self.server.requests()[n].body).unwrap()
    }

    /// The number of requests to the models.
    pub(crate) fn asked(&self) -> usize {
        self.server.requests().len()
    }

    /// A task's tool calls by turn and call index: id, tool, state, attempts.
    pub(crate) async fn calls_of(&self, task: TaskId) -> Vec<(CallId, String, String, i32)> {
        let of = format!("task_id = '{task}' AND call_index > 0 ORDER BY turn, call_index");
        let rows = self.stack.rows(&format!("SELECT id, tool, state, attempt FROM calls WHERE {of}")).await;
        rows.into_iter().map(|(id, tool, state, attempt)| (CallId(id), tool, state, attempt)).collect()
    }

    pub(crate) async fn close(self) {
        self.check_turns().await;
        self.stack.finish().await;
    }

    /// What each model was asked can be put together from what is on record, to the letter.
    async fn check_turns(&self) {
        let store = self.stack.store(Purpose::Audit).await;
        let turns = "SELECT id FROM calls WHERE pool = 'models' AND state <> 'refused'";
        for turn in self.stack.values(turns).await {
            let record = store.record(CallId(turn)).await.unwrap().unwrap();
            serde_json::from_str::<TurnRequest>(record.arguments.get()).unwrap();
        }
    }
}

/// The answer of a task that succeeded.
pub(crate) fn answer(report: &TaskReport) -> &str {
    assert_eq!(report.task.state, TaskState::Succeeded, "{:?} {:?}", report.task.code, report.task.message);
    report.task.answer.as_deref().unwrap()
}

/// The last tool message of a request as JSON.
pub(crate) fn feedback(messages: &[Value]) -> Value {
    let last = messages.iter().rev().find(|message| message["role"] == "tool").unwrap();
    serde_json::from_str(last["content"].as_str().unwrap()).unwrap()
}

/// Roles of messages, in order.
pub(crate) fn roles(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["role"].as_str().unwrap()).collect()
}

/// A tool over HTTP for each name, at `/<name>` of the server, with these further lines of the manifest.
pub(crate) fn http_tools(server: &ScriptedHttp, names: &[&str], lines: &str) -> Vec<Tool> {
    let entry = |name: &&str| {
        let url = server.url(&format!("/{name}"));
        format!("[[tool]]\nname = \"{name}\"\n{lines}\n[tool.http]\nmethod = \"POST\"\nurl = \"{url}\"\n")
    };
    redial_tools::load(&file("tools", &names.iter().map(entry).collect::<String>())).unwrap()
}
