//! Everything that a scenario needs: a folder, `redial dev`, two workers, an HTTP service, and the command line.

mod cli;
mod dev;
mod folder;
mod ledgers;
mod workers;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context;
use chrono::Utc;
use redial_proto::{TaskId, TaskResult};
use redial_servers::Signal;

use self::{cli::Cli, dev::Dev, folder::Folder, ledgers::Ledgers, workers::Workers};
use crate::{
    dates::Dates,
    http_service::HttpService,
    poll::until,
    real_model::RealModel,
    record::{Call, ToolLine},
    task::Task,
};

pub(crate) use self::dev::LEASE;

/// How long everything may take to start.
const START: Duration = Duration::from_mins(1);
/// One tool of each kind of worker, and how many workers have it.
const TOOLS: [(&str, u32); 2] = [("reserve_hotel", 1), ("book_flight", 2)];

/// A private Redial, and the services that its tools call.
#[derive(Debug)]
pub(crate) struct Stack {
    pub(crate) cli: Cli,
    pub(crate) http_service: HttpService,
    pub(crate) workers: Workers,
    pub(crate) ledgers: Ledgers,
    pub(crate) dates: Dates,
    /// The task that the demo prints at the end.
    pub(crate) shown_task: Option<TaskId>,
    /// `None` if the models are scripted.
    real_model: Option<RealModel>,
    dev: Option<Dev>,
    /// Where its gateway answers.
    http_url: String,
    folder: Folder,
}

impl Stack {
    /// Empties the folder and starts the HTTP service; nothing else runs yet.
    pub(crate) async fn new(real_model: Option<RealModel>) -> anyhow::Result<Self> {
        let folder = Folder::emptied().await?;
        let http_service = HttpService::start().await?;
        folder.write_tools(http_service.address())?;
        if let Some(model) = &real_model {
            folder.write_models(model)?;
            folder.write_agents(model)?;
        }
        Ok(Self {
            cli: Cli::new(cli::program("redial")?, folder.log("cli")?),
            workers: Workers::new(cli::program("redial-demo-worker")?),
            ledgers: Ledgers(folder.path().to_owned()),
            http_service,
            dates: Dates::at(Utc::now()),
            shown_task: None,
            real_model,
            dev: None,
            http_url: String::new(),
            folder,
        })
    }

    /// Where data and logs are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// True if the models are scripted, so that their behaviour is known.
    pub(crate) fn is_scripted(&self) -> bool {
        self.real_model.is_none()
    }

    /// Where the gateway answers.
    pub(crate) fn http_url(&self) -> &str {
        &self.http_url
    }

    /// How long a scenario may wait for a real model.
    pub(crate) fn scene_limit(&self) -> Option<Duration> {
        self.real_model.as_ref().map(|model| model.limit)
    }

    /// The record of a task.
    pub(crate) async fn show_task(&self, id: TaskId) -> anyhow::Result<Task> {
        self.cli.json(&["show", &id.to_string()]).await
    }

    /// Which models the tasks use, for the output.
    pub(crate) fn model_description(&self) -> String {
        match &self.real_model {
            None => "the models are scripted".to_owned(),
            Some(RealModel { url, model, .. }) => format!("every model is {model} at {url}"),
        }
    }

    /// Starts everything, and waits until every tool has its workers. Returns the time until `redial dev` was ready.
    pub(crate) async fn start(&mut self) -> anyhow::Result<Duration> {
        let all = async {
            let took = self.start_dev().await?;
            self.start_worker("worker-a")?;
            self.start_worker("worker-b")?;
            self.wait_for_tools().await?;
            Ok(took)
        };
        let started = tokio::time::timeout(START, all).await;
        let logs = self.folder.path().display();
        started.with_context(|| format!("not everything started within {} s; logs: {logs}/*.log", START.as_secs()))?
    }

    /// Starts `redial dev`, again with the same data after a kill; returns the time until it was ready.
    pub(crate) async fn start_dev(&mut self) -> anyhow::Result<Duration> {
        let began = Instant::now();
        let dev = self.dev.insert(Dev::start(&self.folder)?);
        let ready = dev.ready(&self.folder).await?;
        self.cli.connect(&ready.nats_url, &ready.database_url);
        self.workers.connect(&ready.nats_url);
        self.http_url = ready.http_url.unwrap_or_default();
        Ok(began.elapsed())
    }

    /// Starts a worker with the native tools.
    pub(crate) fn start_worker(&mut self, name: &str) -> anyhow::Result<()> {
        self.workers.start(name, &self.folder)
    }

    /// Kills `redial dev`, which includes the dispatcher, NATS and Postgres, with SIGKILL, and waits until all have
    /// ended.
    pub(crate) async fn kill_dev(&mut self) -> anyhow::Result<()> {
        self.dev.take().context("redial dev is not running")?.kill().await
    }

    /// Waits until every tool has as many workers as it should.
    pub(crate) async fn wait_for_tools(&self) -> anyhow::Result<()> {
        let check = async || {
            let tools: Vec<ToolLine> = self.cli.lines(&["tools"]).await?;
            let enough = |(name, workers)| tools.iter().any(|tool| tool.name == name && tool.workers >= workers);
            anyhow::Ok(TOOLS.into_iter().all(enough).then_some(()))
        };
        until("every tool has its workers", check).await
    }

    /// Submits a task, and waits for its end like [`Stack::wait_for_task`].
    pub(crate) async fn run_task(&self, agent: &str, input: &str) -> anyhow::Result<Task> {
        let id = self.submit_task(agent, input).await?;
        self.wait_for_task(id).await
    }

    /// Submits a task.
    pub(crate) async fn submit_task(&self, agent: &str, input: &str) -> anyhow::Result<TaskId> {
        let submitted: TaskResult = self.cli.json(&["task", input, "--agent", agent]).await?;
        submitted.task.with_context(|| format!("the task was not accepted: {submitted:?}"))
    }

    /// Waits for the end of a task, checks what must hold for every task, and replays its record.
    pub(crate) async fn wait_for_task(&self, id: TaskId) -> anyhow::Result<Task> {
        let ended = async || {
            let task = self.show_task(id).await?;
            Ok(Some(task).filter(Task::has_ended))
        };
        let task = until("the task ends", ended).await?;
        task.check()?;
        self.cli.run(&["replay", &id.to_string()]).await?.expect_success()?;
        Ok(task)
    }

    /// Waits for the end of a call.
    pub(crate) async fn wait_for_call(&self, call: &str) -> anyhow::Result<Call> {
        let ended = async || Ok(Some(self.show_call(call).await?).filter(Call::has_ended));
        until("the call ends", ended).await
    }

    /// The record of a call.
    pub(crate) async fn show_call(&self, call: &str) -> anyhow::Result<Call> {
        self.cli.json(&["show", call]).await
    }

    /// Shuts everything down: the workers first, because a dispatcher must still accept their reports.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        let workers = self.workers.stop().await;
        if let Some(dev) = self.dev {
            let status = dev.process.stop(Signal::TERM, workers::GRACE).await;
            anyhow::ensure!(status.success(), "redial dev ended with {status}; log: {}", dev.log.display());
        }
        workers
    }
}
