//! A Redial with something to look at.

use std::path::Path;

use redial_proto::{AgentRef, AgentSpec, Submission, TaskId, TaskSubmission, ToolEffect};
use redial_testkit::{Stack, TestGateway, arguments, scripted_tool};
use redial_worker::{Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Servers, a dispatcher, a worker with tools and models, and a gateway without tokens.
pub(crate) struct Scene {
    pub(crate) stack: Stack,
    pub(crate) gateway: TestGateway,
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
calls = [{ name = "tool", arguments = { n = 1 } }]

[[rule]]
text = "It is done."
"#;

impl Scene {
    pub(crate) async fn start() -> Self {
        let mut stack = Stack::start().await;
        let folder = tempfile::tempdir().unwrap();
        let models = models(folder.path(), CLERK);
        let tools = vec![
            scripted_tool("tool", ToolEffect::Read, &stack.ledger),
            scripted_tool("risky", ToolEffect::Unsafe, &stack.ledger),
            Tool::new("book", book).describe("Books a trip.").effect(ToolEffect::Keyed),
        ];
        stack.work(tools).await;
        stack.serve_models(&models).await;
        let gateway = stack.serve_http().await;
        Self { stack, gateway, _folder: folder }
    }

    /// A task of the clerk that has ended.
    pub(crate) async fn task(&self, input: &str) -> TaskId {
        let task = self.stack.task(&TaskSubmission::new(input, AgentRef::Inline(Box::new(clerk())))).await;
        self.stack.task_ended(task).await;
        task
    }

    /// Calls of the tool that failed.
    pub(crate) async fn failed(&self, count: usize) {
        let submission = |n: usize| Submission::new("tool", arguments(json!({"n": n, "fail": "business_rule"})));
        let submissions: Vec<Submission> = (0..count).map(submission).collect();
        for chunk in submissions.chunks(1_000) {
            self.stack.call_all(chunk).await;
        }
    }

    pub(crate) async fn finish(self) {
        drop(self.gateway);
        self.stack.finish().await;
    }
}

/// Models that scripts play.
pub(crate) fn models(folder: &Path, script: &str) -> std::path::PathBuf {
    let models = folder.join("models.toml");
    std::fs::write(folder.join("script.toml"), script).unwrap();
    std::fs::write(&models, "[models.clerk]\nprovider = \"script\"\nscript = \"script.toml\"\n").unwrap();
    models
}

/// An agent with all tools.
pub(crate) fn clerk() -> AgentSpec {
    AgentSpec { tools: vec!["*".to_owned()], max_corrections: 2, ..AgentSpec::new("clerk") }
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

async fn book(trip: Trip) -> Result<serde_json::Value, ToolError> {
    Ok(json!({ "booked": trip }))
}
