//! Everything that the scenes play on: a folder, `redial dev`, two workers, the HTTP server, and the command line.

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
use redial_servers::Signal;

use crate::{
    partner::Partner,
    record::{Call, ToolLine},
    stage::{cli::Cli, dev::Dev, folder::Folder, workers::Workers},
};

/// How long a worker may be silent before its calls are given to others; short, so that the demo is, too.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// Pause between two looks at something that is awaited.
const LOOK_AGAIN: Duration = Duration::from_millis(40);
/// How long everything may take to start.
const START: Duration = Duration::from_secs(60);
/// How long a process may take to end in order.
const GRACE: Duration = Duration::from_secs(15);
const TOOLS: [(&str, u32); 6] = [
    ("reserve_hotel", 1),
    ("order_taxi", 1),
    ("weekday", 1),
    ("convert_currency", 1),
    ("book_flight", 2),
    ("refresh_prices", 2),
];

/// See the module.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) cli: Cli,
    pub(crate) partner: Partner,
    pub(crate) workers: Workers,
    /// The call to show at the end.
    pub(crate) retried: Option<String>,
    dev: Option<Dev>,
    folder: Folder,
}

impl Stage {
    /// Empties the folder; nothing runs yet but the HTTP server.
    pub(crate) async fn new() -> anyhow::Result<Self> {
        let folder = Folder::emptied().await?;
        let partner = Partner::start().await?;
        folder.write_tools(partner.address())?;
        Ok(Self {
            cli: Cli::new(cli::program("redial")?, folder.log("cli")?),
            workers: Workers::new(cli::program("redial-demo-worker")?),
            partner,
            retried: None,
            dev: None,
            folder,
        })
    }

    /// Where data and logs are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
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
        let began = Instant::now();
        let dev = self.dev.insert(Dev::start(&self.folder)?);
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

    /// The file in which the airline notes every request of the native workers.
    pub(crate) fn airline(&self) -> std::path::PathBuf {
        self.folder.path().join(workers::AIRLINE)
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
        let workers = self.workers.stop().await;
        if let Some(dev) = self.dev {
            let status = dev.process.stop(Signal::TERM, GRACE).await;
            anyhow::ensure!(status.success(), "redial dev did not end in order: {status}; see {}", dev.log.display());
        }
        workers
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
