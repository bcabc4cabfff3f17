//! Dispatchers and workers as processes of their own, of this very program.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use redial_servers::{Process, Signal};

use super::servers::{Database, Servers};

/// How long a process may take to be ready, or to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Running processes; [`Fleet::stop`] ends them in order, a drop kills them.
pub(super) struct Fleet {
    folder: PathBuf,
    nats_url: String,
    database_url: String,
    pub(super) dispatchers: Vec<Process>,
    pub(super) workers: Vec<Process>,
}

impl Fleet {
    /// Starts dispatchers.
    pub(super) async fn start(servers: &Servers, database: &Database, dispatchers: usize) -> anyhow::Result<Self> {
        let mut fleet = Self {
            folder: servers.folder.clone(),
            nats_url: servers.nats_url().to_owned(),
            database_url: database.url.clone(),
            dispatchers: Vec::new(),
            workers: Vec::new(),
        };
        for _ in 0..dispatchers {
            let process = fleet.spawn(&["dispatcher"]).await?;
            fleet.dispatchers.push(process);
        }
        Ok(fleet)
    }

    /// Starts workers: `redial worker`, or another role with its flags.
    pub(super) async fn add_workers(&mut self, workers: usize, role: &[&str]) -> anyhow::Result<()> {
        for _ in 0..workers {
            let process = self.spawn(role).await?;
            self.workers.push(process);
        }
        Ok(())
    }

    /// Ends workers, which drain.
    pub(super) async fn stop_workers(&mut self) {
        stop(std::mem::take(&mut self.workers)).await;
    }

    /// Ends all of them, the dispatchers last.
    pub(super) async fn stop(mut self) {
        self.stop_workers().await;
        stop(std::mem::take(&mut self.dispatchers)).await;
    }

    /// Starts a process and waits until it says that it is ready. Its settings come from here alone: the folder holds
    /// no settings file, and no variable of ours is handed on.
    async fn spawn(&self, role: &[&str]) -> anyhow::Result<Process> {
        let log = self.log();
        let file = File::create(&log)?;
        let mut command = Process::command(std::env::current_exe()?)?;
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REDIAL_")) {
            command.env_remove(name);
        }
        command.args(role).args(["--log", "info", "--log-format", "text"]).current_dir(&self.folder);
        command.env("REDIAL_NATS_URL", &self.nats_url).env("REDIAL_DATABASE_URL", &self.database_url);
        command.stdout(file.try_clone()?).stderr(file);
        let process = Process::spawn(command)?;
        ready(&process, &log).await?;
        Ok(process)
    }

    /// A log file that is not there yet.
    fn log(&self) -> PathBuf {
        let free = |n: &u32| !self.log_of(*n).exists();
        self.log_of((1..=u32::MAX).find(free).unwrap_or_default())
    }

    fn log_of(&self, n: u32) -> PathBuf {
        self.folder.join(format!("process-{n}.log"))
    }
}

/// Both roles log that they are ready, and nothing before that holds the word alone.
async fn ready(process: &Process, log: &Path) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let text = fs::read_to_string(log)?;
        if text.contains(" ready") {
            return Ok(());
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
