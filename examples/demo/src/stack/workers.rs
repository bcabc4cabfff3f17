//! The processes of `redial-demo-worker`.

use std::{path::PathBuf, process::Stdio, time::Duration};

use anyhow::Context;
use redial_servers::{Process, Signal};

use super::{cli, folder::Folder};

/// How long a process may take to shut down.
pub(super) const GRACE: Duration = Duration::from_secs(15);

/// The running workers with the native tools.
#[derive(Debug)]
pub(crate) struct Workers {
    program: PathBuf,
    nats_url: String,
    running: Vec<Worker>,
}

#[derive(Debug)]
struct Worker {
    name: String,
    process: Process,
    log: PathBuf,
}

impl Workers {
    pub(super) fn new(program: PathBuf) -> Self {
        Self { program, nats_url: String::new(), running: Vec::new() }
    }

    pub(super) fn connect(&mut self, nats_url: &str) {
        nats_url.clone_into(&mut self.nats_url);
    }

    pub(super) fn start(&mut self, name: &str, folder: &Folder) -> anyhow::Result<()> {
        let mut command = cli::command(&self.program)?;
        command.args(["--name", name, "--ledgers"]).arg(folder.path());
        command.env("REDIAL_NATS_URL", &self.nats_url);
        let log = folder.log(name)?;
        command.stdout(Stdio::from(log.try_clone()?)).stderr(log);
        let process = Process::spawn(command)?;
        self.running.push(Worker { name: name.to_owned(), process, log: folder.log_path(name) });
        Ok(())
    }

    /// The name of the running worker with this id: an id is a name and a random suffix.
    pub(crate) fn name_of(&self, id: &str) -> anyhow::Result<&str> {
        let name = id.rsplit_once('-').map_or(id, |(name, _random)| name);
        let mut running = self.running.iter().map(|worker| worker.name.as_str());
        running.find(|running| *running == name).with_context(|| format!("{id} is not a worker of the demo"))
    }

    /// Kills a worker with SIGKILL and waits until it has ended.
    pub(crate) async fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        let position = self.running.iter().position(|worker| worker.name == name);
        let worker = self.running.swap_remove(position.with_context(|| format!("{name} is not running"))?);
        worker.process.kill().await;
        Ok(())
    }

    /// Shuts all workers down; an error names the first that failed.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        for worker in &self.running {
            worker.process.signal(Signal::TERM);
        }
        let mut result = Ok(());
        for Worker { name, process, log } in &self.running {
            let status = process.stop(Signal::TERM, GRACE).await;
            if result.is_ok() && !status.success() {
                result = Err(anyhow::anyhow!("{name} ended with {status}; log: {}", log.display()));
            }
        }
        result
    }
}
