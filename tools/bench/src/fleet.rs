//! Dispatchers and workers as processes of their own.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use redial_servers::{Process, Signal};

use crate::{database::Database, environment::Environment, servers::Servers};

/// How long a process may take to be ready, or to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program {
    /// `redial`.
    Redial,
    /// This program.
    Own,
}

/// Running processes; [`Fleet::stop`] ends them in order, a drop kills them.
pub(crate) struct Fleet {
    environment: Environment,
    pub(crate) dispatchers: Vec<Process>,
    pub(crate) workers: Vec<Process>,
    gateways: Vec<Process>,
}

impl Fleet {
    /// Starts dispatchers.
    pub(crate) async fn start(servers: &Servers, database: &Database, dispatchers: usize) -> anyhow::Result<Self> {
        Self::start_in(servers.environment(database)?, dispatchers).await
    }

    /// The same in any environment.
    pub(crate) async fn start_in(environment: Environment, dispatchers: usize) -> anyhow::Result<Self> {
        let mut fleet = Self { environment, dispatchers: Vec::new(), workers: Vec::new(), gateways: Vec::new() };
        for _ in 0..dispatchers {
            fleet.add_dispatcher().await?;
        }
        Ok(fleet)
    }

    /// Starts one more.
    pub(crate) async fn add_dispatcher(&mut self) -> anyhow::Result<()> {
        let process = self.spawn(Program::Redial, &["dispatcher"]).await?;
        self.dispatchers.push(process);
        Ok(())
    }

    /// Starts workers with these arguments.
    pub(crate) async fn add_workers(&mut self, workers: usize, program: Program, args: &[&str]) -> anyhow::Result<()> {
        for _ in 0..workers {
            let process = self.spawn(program, args).await?;
            self.workers.push(process);
        }
        Ok(())
    }

    /// Starts a gateway that asks for no tokens; returns its URL.
    pub(crate) async fn add_gateway(&mut self) -> anyhow::Result<String> {
        self.add_gateway_of("default").await
    }

    /// The same for another tenant.
    pub(crate) async fn add_gateway_of(&mut self, tenant: &str) -> anyhow::Result<String> {
        let of = format!("--tenant={tenant}");
        let args = ["gateway", "--listen=127.0.0.1:0", "--without-token", "--gateway-rate=1000000", &of];
        let log = self.log();
        self.gateways.push(self.spawn(Program::Redial, &args).await?);
        let text = fs::read_to_string(log)?;
        let address =
            text.lines().find(|line| line.contains("Gateway started")).and_then(|line| line.split("address=").nth(1));
        let address = address.and_then(|rest| rest.split_whitespace().next());
        Ok(format!("http://{}", address.ok_or_else(|| anyhow::anyhow!("the gateway logged no address:\n{text}"))?))
    }

    /// Ends workers, which drain.
    pub(crate) async fn stop_workers(&mut self) {
        stop(std::mem::take(&mut self.workers)).await;
    }

    /// Ends all of them, the dispatchers last.
    pub(crate) async fn stop(mut self) {
        stop(std::mem::take(&mut self.gateways)).await;
        self.stop_workers().await;
        stop(std::mem::take(&mut self.dispatchers)).await;
    }

    /// Starts a process and waits until it says that it is ready.
    async fn spawn(&self, program: Program, args: &[&str]) -> anyhow::Result<Process> {
        let program = match program {
            Program::Redial => self.environment.redial.clone(),
            Program::Own => std::env::current_exe()?,
        };
        let log = self.log();
        let process = self.environment.spawn(&program, args, &log)?;
        ready(&process, &log).await?;
        Ok(process)
    }

    /// An unused name of a log file.
    fn log(&self) -> PathBuf {
        let free = |n: &u32| !self.log_of(*n).exists();
        self.log_of((1..=u32::MAX).find(free).unwrap_or_default())
    }

    fn log_of(&self, n: u32) -> PathBuf {
        self.environment.folder.join(format!("process-{n}.log"))
    }
}

/// What each role logs once it serves.
const STARTED: [&str; 3] = ["Dispatcher started", "Worker started", "Gateway started"];

async fn ready(process: &Process, log: &Path) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let text = fs::read_to_string(log)?;
        if STARTED.iter().any(|line| text.contains(line)) {
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
