//! Everything that the scenes play on: a folder, `redial dev`, two workers, the HTTP server, and the command line.

pub(crate) mod books;
pub(crate) mod cli;
mod dev;
mod folder;
mod kill;
mod workers;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context;
use chrono::Utc;
use redial_proto::{TaskId, TaskResult};
use redial_servers::Signal;

use crate::{
    dates::Dates,
    models::Endpoint,
    partner::Partner,
    record::{Call, ToolLine},
    stage::{books::Books, cli::Cli, dev::Dev, folder::Folder, workers::Workers},
    task::Task,
};

/// How long a worker may be silent before its calls are given to others; short, so that the demo is, too.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// Pause between two looks at something that is awaited.
const LOOK_AGAIN: Duration = Duration::from_millis(40);
/// How long everything may take to start.
const START: Duration = Duration::from_secs(60);
/// How long a process may take to end in order.
const GRACE: Duration = Duration::from_secs(15);
/// A tool of each kind of worker, and the workers that have it.
const TOOLS: [(&str, u32); 4] =
    [("reserve_hotel", 1), ("convert_currency", 1), ("book_flight", 2), ("refresh_prices", 2)];

/// See the module.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) cli: Cli,
    pub(crate) partner: Partner,
    pub(crate) workers: Workers,
    pub(crate) books: Books,
    pub(crate) dates: Dates,
    /// The task to show at the end.
    pub(crate) shown: Option<TaskId>,
    /// Who plays the models instead of the scripts.
    model: Option<Endpoint>,
    dev: Option<Dev>,
    folder: Folder,
}

impl Stage {
    /// Empties the folder; nothing runs yet but the HTTP server. Without a real model, scripts play the models.
    pub(crate) async fn new(model: Option<Endpoint>) -> anyhow::Result<Self> {
        let folder = Folder::emptied().await?;
        let partner = Partner::start().await?;
        folder.write_tools(partner.address())?;
        if let Some(model) = &model {
            folder.write_models(model)?;
        }
        Ok(Self {
            cli: Cli::new(cli::program("redial")?, folder.log("cli")?),
            workers: Workers::new(cli::program("redial-demo-worker")?),
            books: Books(folder.path().to_owned()),
            partner,
            dates: Dates::at(Utc::now()),
            shown: None,
            model,
            dev: None,
            folder,
        })
    }

    /// Where data and logs are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// True if scripts play the models: then it is known what they do.
    pub(crate) fn is_scripted(&self) -> bool {
        self.model.is_none()
    }

    /// Who plays the models, in words.
    pub(crate) fn cast(&self) -> String {
        match &self.model {
            None => "scripts play the models".to_owned(),
            Some(Endpoint { url, model, .. }) => format!("{model} at {url} plays every model"),
        }
    }

    /// Starts everything, and waits until every tool has its workers. Returns the time until `redial dev` was ready.
    pub(crate) async fn start(&mut self) -> anyhow::Result<Duration> {
        let all = async {
            let took = self.start_dev().await?;
            self.start_worker("worker-a")?;
            self.start_worker("worker-b")?;
            self.tools_are_there().await?;
            Ok(took)
        };
        let started = tokio::time::timeout(START, all).await;
        let logs = self.folder.path().display();
        started.with_context(|| format!("not everything runs after {} s; logs: {logs}/*.log", START.as_secs()))?
    }

    /// Starts `redial dev`, a second time on the same folder; returns the time until it was ready.
    pub(crate) async fn start_dev(&mut self) -> anyhow::Result<Duration> {
        self.start_dev_with(true).await
    }

    /// The same without its worker: nobody runs the manifest's tools, and nobody asks models.
    pub(crate) async fn start_dev_without_worker(&mut self) -> anyhow::Result<Duration> {
        self.start_dev_with(false).await
    }

    async fn start_dev_with(&mut self, worker: bool) -> anyhow::Result<Duration> {
        let began = Instant::now();
        let dev = self.dev.insert(Dev::start(&self.folder, worker)?);
        let ready = dev.ready(&self.folder).await?;
        self.cli.connect(&ready.nats_url, &ready.database_url);
        self.workers.connect(&ready.nats_url);
        Ok(began.elapsed())
    }

    /// Starts a worker with the native tools.
    pub(crate) fn start_worker(&mut self, name: &str) -> anyhow::Result<()> {
        self.workers.start(name, &self.folder)
    }

    /// Kills Postgres, NATS and `redial dev`, which is the dispatcher, with SIGKILL; returns when all are gone.
    pub(crate) async fn kill_dev(&mut self) -> anyhow::Result<()> {
        self.dev.take().context("redial dev does not run")?.kill().await
    }

    /// Waits until every tool has as many workers as it should.
    pub(crate) async fn tools_are_there(&self) -> anyhow::Result<()> {
        let there = async || {
            let tools: Vec<ToolLine> = self.cli.lines(&["tools"]).await?;
            let enough = |(name, workers)| tools.iter().any(|tool| tool.name == name && tool.workers >= workers);
            anyhow::Ok(TOOLS.into_iter().all(enough).then_some(()))
        };
        until("every tool has its workers", there).await
    }

    /// Submits a task, waits for its end, and checks what must hold for every task.
    pub(crate) async fn task(&self, agent: &str, input: &str) -> anyhow::Result<Task> {
        let id = self.submit_task(agent, input).await?;
        self.end_of_task(id).await
    }

    /// Submits a task.
    pub(crate) async fn submit_task(&self, agent: &str, input: &str) -> anyhow::Result<TaskId> {
        let submitted: TaskResult = self.cli.json(&["task", input, "--agent", agent]).await?;
        submitted.task.with_context(|| format!("no task was accepted: {submitted:?}"))
    }

    /// Waits for the end of a task, and checks what must hold for every task.
    pub(crate) async fn end_of_task(&self, id: TaskId) -> anyhow::Result<Task> {
        let ended = async || Ok(Some(self.show_task(id).await?).filter(Task::has_ended));
        let task = until("the task ends", ended).await?;
        task.check()?;
        // Decided again from what was recorded, everything must come out the same.
        self.cli.run(&["replay", &id.to_string()]).await?.expect_success()?;
        Ok(task)
    }

    /// What is on record of a task.
    pub(crate) async fn show_task(&self, id: TaskId) -> anyhow::Result<Task> {
        self.cli.json(&["show", &id.to_string()]).await
    }

    /// Waits for the end of a call.
    pub(crate) async fn end_of(&self, call: &str) -> anyhow::Result<Call> {
        let ended = async || Ok(Some(self.show(call).await?).filter(Call::has_ended));
        until("the call ends", ended).await
    }

    /// What is on record of a call.
    pub(crate) async fn show(&self, call: &str) -> anyhow::Result<Call> {
        self.cli.json(&["show", call]).await
    }

    /// Ends everything in order: the workers first, because a dispatcher must still take their results.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        // No worker shall wait for a door that a failed scene left closed.
        let opened = self.books.open_warehouse();
        let workers = self.workers.stop().await;
        if let Some(dev) = self.dev {
            let status = dev.process.stop(Signal::TERM, GRACE).await;
            anyhow::ensure!(status.success(), "redial dev did not end in order: {status}; see {}", dev.log.display());
        }
        workers.and(opened)
    }
}

/// Looks again and again until there is something; the time limit is the scene's.
pub(crate) async fn until<T>(what: &str, look: impl AsyncFn() -> anyhow::Result<Option<T>>) -> anyhow::Result<T> {
    loop {
        if let Some(found) = look().await.with_context(|| format!("waiting until {what}"))? {
            return Ok(found);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
