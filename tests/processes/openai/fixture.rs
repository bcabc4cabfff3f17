//! A stack with agents, a scripted model, and gateways.

use std::{path::PathBuf, time::Duration};

use redial_proto::ToolEffect;
use redial_test_stack::{Reply, ScriptedHttp, Stack, TestGateway, file};
pub(crate) use redial_test_stack::{calls, says};
use redial_worker::{Tool, ToolError};
use serde_json::{Value, json};

use crate::python;

const MODEL: &str = "/small/chat/completions";
/// The client of the second one has one second to answer its functions.
const AGENTS: &str = r#"
[agents.travel]
model = "small"
tools = ["*"]
system = "You book trips."

[agents.hasty]
model = "small"
tools = ["*"]
function_timeout_ms = 1000
"#;

pub(crate) struct Fixture {
    pub(crate) stack: Stack,
    pub(crate) model: ScriptedHttp,
    pub(crate) gateways: Vec<TestGateway>,
    python: PathBuf,
}

async fn book(trip: Value) -> Result<Value, ToolError> {
    if trip["city"] == "Atlantis" {
        return Err(ToolError::business_rule("Atlantis has no airport."));
    }
    Ok(json!({"booked": trip["city"]}))
}

/// Runs a script with a model that gives these replies: what the model was asked. `None` if there is no Python, and that is
/// wanted.
pub(crate) async fn seen(script: &str, replies: impl IntoIterator<Item = Reply>) -> Option<Vec<Value>> {
    let fixture = Fixture::open(replies).await?;
    fixture.run(script).await;
    let seen = fixture.seen();
    fixture.close().await;
    Some(seen)
}

impl Fixture {
    /// Starts everything; `None` if there is no Python, and that is wanted.
    pub(crate) async fn open(replies: impl IntoIterator<Item = Reply>) -> Option<Self> {
        let python = python::find()?;
        let settings = |stack: &mut Stack| {
            (stack.dispatcher.lease, stack.dispatcher.agents) = (Duration::from_secs(15), Some(file("agents", AGENTS)));
        };
        let mut stack = Stack::start_with(settings).await;
        let model = ScriptedHttp::start().await;
        model.script(MODEL, replies);
        let url = model.url("/small");
        let small = format!(
            "[models.small]\nprovider = \"openai\"\nmodel = \"scripted-1\"\nbase_url = \"{url}\"\nstream = false\n\
             retry = {{ initial = \"1ms\", cap = \"1ms\", max_attempts = 3 }}\n"
        );
        let book = Tool::new("book", book).describe("Books a trip.").effect(ToolEffect::Idempotent);
        stack.work(vec![book]).await;
        stack.serve_models(&file("models", &small)).await;
        let gateways = vec![stack.serve_http().await, stack.serve_http().await];
        Some(Self { stack, model, gateways, python })
    }

    /// Runs a script of this folder with the addresses of the gateways; it must succeed.
    async fn run(&self, script: &str) {
        let mut command = tokio::process::Command::new(&self.python);
        let urls: Vec<String> = self.gateways.iter().map(|gateway| format!("{}/v1", gateway.url)).collect();
        command
            .arg(python::repository().join("tests/processes/openai").join(script))
            .env("GATEWAYS", urls.join(" "))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command.env_remove("OPENAI_API_KEY").kill_on_drop(true);
        let output = command.output().await.unwrap();
        let (said, failed) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{said}\n{failed}\n{:?}", self.seen());
    }

    /// What the model was asked.
    fn seen(&self) -> Vec<Value> {
        let body = |request: &redial_test_stack::Request| serde_json::from_slice(&request.body).unwrap();
        self.model.requests().iter().map(body).collect()
    }

    pub(crate) async fn close(self) {
        self.stack.finish().await;
    }
}
