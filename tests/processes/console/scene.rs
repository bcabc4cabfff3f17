//! A Redial with something to look at.

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use redial_proto::{AgentRef, AgentSpec, ErrorClass, Failure, TaskId, TaskSubmission, ToolEffect, ToolSpec};
use redial_test_stack::{Stack, TestGateway, scripted_tool};
use redial_worker::{Context, Handler, Tool, ToolError, ToolResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

/// Servers, a dispatcher, a worker with tools and models, and a gateway without tokens.
pub(crate) struct Scene {
    pub(crate) stack: Stack,
    pub(crate) gateway: TestGateway,
    /// A task that waits runs until this file exists.
    pub(crate) hold: PathBuf,
    _folder: tempfile::TempDir,
}

/// A model that books with a wrong date first, follows the feedback, and answers.
const CLERK: &str = r#"
[[rule]]
when = { last = "user", contains = "tomorrow" }
thought = "The user says tomorrow."
calls = [{ name = "book", arguments = { city = "Rome", date = "tomorrow", seats = 2 } }]

[[rule]]
when = { user = "tomorrow", tool = "book", failed = true, contains = ["/date"] }
calls = [{ name = "book", arguments = { city = "Rome", date = "2026-12-01", seats = 2 } }]

[[rule]]
when = { user = "never right", tool = "book", failed = true, contains = ["\"never\""] }
calls = [{ name = "book", arguments = { city = "Rome", date = "never again", seats = 1 } }]

[[rule]]
when = { user = "never right", tool = "book", failed = true, contains = ["never again"] }
calls = [{ name = "book", arguments = { city = "Rome", date = "no", seats = 1 } }]

[[rule]]
when = { last = "user", contains = "never right" }
calls = [{ name = "book", arguments = { city = "Rome", date = "never", seats = 1 } }]

[[rule]]
when = { last = "user", contains = "wait" }
calls = [{ name = "tool", arguments = { n = 1, hold = "HOLD" } }]

[[rule]]
when = { last = "user", contains = "repeat" }
thought = "{{user}}"
calls = [{ name = "parrot", arguments = { text = "{{user}}" } }]

[[rule]]
when = { user = "repeat", tool = "parrot" }
text = "{{user}}"

[[rule]]
text = "It is done."
"#;

impl Scene {
    pub(crate) async fn start() -> Self {
        let mut stack = Stack::start().await;
        let folder = tempfile::tempdir().unwrap();
        let (hold, models) = (folder.path().join("hold"), folder.path().join("models.toml"));
        std::fs::write(folder.path().join("script.toml"), CLERK.replace("HOLD", hold.to_str().unwrap())).unwrap();
        std::fs::write(&models, "[models.clerk]\nprovider = \"script\"\nscript = \"script.toml\"\n").unwrap();
        let parrot = ToolSpec { effect: ToolEffect::Read, ..ToolSpec::named("parrot") };
        let tools = vec![
            scripted_tool("tool", ToolEffect::Read, &stack.ledger),
            scripted_tool("risky", ToolEffect::Unsafe, &stack.ledger),
            Tool::new("book", book).describe("Books a trip.").effect(ToolEffect::Keyed),
            Tool::from_handler(parrot, Parrot),
        ];
        stack.work(tools).await;
        stack.serve_models(&models).await;
        let gateway = stack.serve_http().await;
        Self { stack, gateway, hold, _folder: folder }
    }

    /// Submits a task of the clerk.
    pub(crate) async fn begin(&self, input: &str) -> TaskId {
        let clerk = AgentSpec { tools: vec!["*".to_owned()], max_corrections: 2, ..AgentSpec::new("clerk") };
        self.stack.task(&TaskSubmission::new(input, AgentRef::Inline(Box::new(clerk)))).await
    }

    /// A task of the clerk that has ended.
    pub(crate) async fn task(&self, input: &str) -> TaskId {
        let task = self.begin(input).await;
        self.stack.task_ended(task).await;
        task
    }

    pub(crate) async fn finish(self) {
        drop(self.gateway);
        self.stack.finish().await;
    }
}

/// What the booking tool wants.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Trip {
    city: String,
    /// YYYY-MM-DD.
    #[schemars(regex(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
    date: String,
    #[schemars(range(min = 1))]
    seats: u32,
}

async fn book(trip: Trip) -> Result<Value, ToolError> {
    Ok(json!({ "booked": trip }))
}

/// A tool that answers, or fails, with the text that it gets.
struct Parrot;

impl Handler for Parrot {
    fn run(&self, _: Context, sent: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        Box::pin(async move {
            let sent: Value = serde_json::from_str(sent.get()).unwrap();
            if sent["fail"] == true {
                return Err(Failure::new(ErrorClass::BusinessRule, sent["text"].as_str().unwrap_or_default()));
            }
            Ok(RawValue::from_string(json!({ "said": sent["text"] }).to_string()).unwrap())
        })
    }
}
