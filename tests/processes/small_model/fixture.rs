//! A stack whose models are the small one, asked in several ways.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use redial_proto::{AgentRef, AgentSpec, Budgets, TaskId, TaskState, TaskSubmission};
use redial_testkit::{Servers, Stack, unique_path, until_within};

use super::{record::Record, server::Server, tools::Runs, wire::Exchange};

/// Longest answer, in tokens: a small model may never stop by itself.
const MAX_TOKENS: u32 = 160;
/// More than all limits of a task allow together on a busy machine.
const PATIENCE: Duration = Duration::from_mins(6);

/// The limits of a task: each ends in bounded time, whatever the model does.
pub(crate) const BUDGETS: Budgets =
    Budgets { turns: 5, corrections: 4, tool_calls: 6, tokens: None, cost_usd: None, seconds: 300 };

/// How the model is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// Function calling: the server reads the calls and holds the model to the schemas.
    Functions,
    /// Function calling with a server that leaves the calls in the text.
    InText,
    /// Without function calling.
    React,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Functions, Self::InText, Self::React];

    /// Its name in `models.toml`, in the table and in the documents.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Functions => "functions",
            Self::InText => "in_text",
            Self::React => "react",
        }
    }
}

pub(crate) struct Fixture {
    stack: Stack,
    server: Server,
    pub(crate) runs: Runs,
    /// Gets the records of the tasks, and everything that was said.
    pub(crate) folder: PathBuf,
}

impl Fixture {
    pub(crate) async fn open(python: &Path) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("small-model");
        std::fs::create_dir_all(&folder).unwrap();
        let server = Server::start(python, &folder).await;
        let mut stack = Stack::on(Servers::start().await).await;
        // The model takes all of a processor that others use, too.
        stack.lease = Duration::from_secs(30);
        stack.dispatch().await;
        let runs = Runs::default();
        stack.work(super::tools::tools(&runs)).await;
        let models = unique_path("models");
        std::fs::write(&models, models_toml(&server.url)).unwrap();
        stack.serve_models(&models).await;
        Self { stack, server, runs, folder }
    }

    /// Runs the n-th task of a way to its end, streamed or not by turns: its record, and what was said meanwhile.
    pub(crate) async fn run(&self, way: Way, n: usize, input: &str) -> (Record, Vec<Exchange>) {
        let before = self.server.said().len();
        let agent = AgentSpec {
            tools: vec!["*".into()],
            system: "You are a helpful assistant. Use the tools.".into(),
            budgets: BUDGETS,
            max_tokens: Some(MAX_TOKENS),
            // Some variety, and the same one each time: see `seed` below.
            temperature: Some(0.7),
            ..AgentSpec::new(model(way, n % 2 == 1))
        };
        let agent = AgentRef::Inline(Box::new(agent));
        let submission = TaskSubmission::new(input, agent);
        let id = self.stack.task(&submission).await;
        self.ended(id).await;
        let record = self.redial(&["show", &id.to_string(), "--json"]).1;
        std::fs::write(self.folder.join(format!("{}-{n}.json", way.name())), &record).unwrap();
        (Record::parse(&record), self.server.said().split_off(before))
    }

    async fn ended(&self, id: TaskId) {
        until_within(PATIENCE, "the task has ended", async || {
            let state = sqlx::query_scalar::<_, String>("SELECT state FROM tasks WHERE id = $1").bind(id.0);
            let state: TaskState = state.fetch_one(self.stack.db()).await.ok()?.parse().ok()?;
            state.is_terminal().then_some(())
        })
        .await;
    }

    /// Runs the program as a user does; whether it succeeded, and what it printed.
    pub(crate) fn redial(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_redial"))
            .args(arguments)
            .env("REDIAL_NATS_URL", self.stack.servers.nats_url())
            .env("REDIAL_DATABASE_URL", self.stack.servers.database_url())
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }

    pub(crate) async fn close(self) {
        self.stack.finish().await;
    }
}

fn model(way: Way, streamed: bool) -> String {
    format!("{}_{}", way.name(), if streamed { "streamed" } else { "whole" })
}

/// A model for each way, streamed and not.
fn models_toml(url: &str) -> String {
    let mut text = String::new();
    for way in Way::ALL {
        let (provider, reading) = match way {
            Way::Functions => ("openai", "parsed"),
            Way::InText => ("openai", "unparsed"),
            Way::React => ("react", "parsed"),
        };
        for stream in [true, false] {
            text.push_str(&format!(
                "[models.{}]\nprovider = \"{provider}\"\nmodel = \"smollm2\"\nbase_url = \"{url}/{reading}/v1\"\n\
                 profile = \"llama_cpp\"\nstream = {stream}\nconcurrency = 1\ntimeout = \"2m\"\n\
                 extra = {{ seed = 7 }}\n\
                 retry = {{ initial = \"100ms\", cap = \"1s\", max_attempts = 3 }}\n\n",
                model(way, stream)
            ));
        }
    }
    text
}
