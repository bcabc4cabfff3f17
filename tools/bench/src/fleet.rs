//! Dispatchers and workers as processes of their own.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use redial_servers::{Process, Signal};
use uuid::Uuid;

/// How long a process may take to be ready, or to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// What processes run on, and the program `redial` that they are.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// Their working folder, for logs.
    pub(crate) folder: PathBuf,
    pub(crate) nats_url: String,
    pub(crate) database_url: String,
    pub(crate) redial: PathBuf,
}

impl Environment {
    /// Creates Redial's tables with its program.
    pub(crate) async fn migrate(&self) -> anyhow::Result<()> {
        let log = self.folder.join("migrate.log");
        let status = self.spawn(&["migrate"], &log)?.ended().await;
        anyhow::ensure!(status.success(), "migrate ended with {status}:\n{}", fs::read_to_string(log)?);
        Ok(())
    }

    /// Starts a process. Its settings come only from here: the folder has no settings file, and Redial's variables are
    /// not passed on.
    pub(crate) fn spawn(&self, args: &[&str], log: &Path) -> anyhow::Result<Process> {
        let file = File::create(log)?;
        let mut command = Process::command(&self.redial)?;
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REDIAL_")) {
            command.env_remove(name);
        }
        command.args(args).current_dir(&self.folder);
        command.env("REDIAL_NATS_URL", &self.nats_url).env("REDIAL_DATABASE_URL", &self.database_url);
        command.env("REDIAL_LOG", "info").env("REDIAL_LOG_FORMAT", "text");
        command.stdout(file.try_clone()?).stderr(file);
        Ok(Process::spawn(command)?)
    }
}

/// Running processes; [`Fleet::stop`] ends them in order, a drop kills them.
pub(crate) struct Fleet {
    environment: Environment,
    pub(crate) workers: Vec<Process>,
    /// Dispatchers, then gateways.
    others: Vec<Process>,
}

impl Fleet {
    pub(crate) async fn start(environment: Environment, dispatchers: usize) -> anyhow::Result<Self> {
        let mut fleet = Self { environment, workers: Vec::new(), others: Vec::new() };
        for _ in 0..dispatchers {
            let (process, _) = fleet.spawn(&["dispatcher"]).await?;
            fleet.others.push(process);
        }
        Ok(fleet)
    }

    pub(crate) async fn add_workers(&mut self, workers: usize, args: &[&str]) -> anyhow::Result<()> {
        for _ in 0..workers {
            let (process, _) = self.spawn(args).await?;
            self.workers.push(process);
        }
        Ok(())
    }

    /// Starts a gateway that asks for no tokens; returns its URL.
    pub(crate) async fn add_gateway(&mut self) -> anyhow::Result<String> {
        let args = ["gateway", "--listen=127.0.0.1:0", "--without-token", "--gateway-rate=1000000"];
        let (process, text) = self.spawn(&args).await?;
        self.others.push(process);
        let started = text.split_once("Gateway started").and_then(|(_, rest)| rest.split_once("address="));
        let address = started.and_then(|(_, rest)| rest.split_whitespace().next());
        Ok(format!("http://{}", address.with_context(|| format!("the gateway logged no address:\n{text}"))?))
    }

    /// Ends all of them, the workers first.
    pub(crate) async fn stop(self) {
        stop(self.workers).await;
        stop(self.others).await;
    }

    /// Starts a process and waits until it says that it is ready; returns also its log so far.
    async fn spawn(&self, args: &[&str]) -> anyhow::Result<(Process, String)> {
        let log = self.environment.folder.join(format!("{}.log", Uuid::now_v7()));
        let process = self.environment.spawn(args, &log)?;
        let text = ready(&process, &log).await?;
        Ok((process, text))
    }
}

/// What each role logs once it serves.
const STARTED: [&str; 3] = ["Dispatcher started", "Worker started", "Gateway started"];

async fn ready(process: &Process, log: &Path) -> anyhow::Result<String> {
    let began = Instant::now();
    loop {
        let text = fs::read_to_string(log)?;
        if STARTED.iter().any(|line| text.contains(line)) {
            return Ok(text);
        }
        if let Some(status) = process.exit_status() {
            anyhow::bail!("a process ended with {status}:\n{text}");
        }
        anyhow::ensure!(began.elapsed() < PATIENCE, "a process is not ready after {PATIENCE:?}:\n{text}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn stop(processes: Vec<Process>) {
    futures_util::future::join_all(processes.iter().map(|process| process.stop(Signal::TERM, PATIENCE))).await;
}

/// Finds the program `redial` that was built beside this one.
pub(crate) fn built_here() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("redial");
    anyhow::ensure!(path.exists(), "{} is missing; build it: cargo build -p redial", path.display());
    Ok(path)
}
