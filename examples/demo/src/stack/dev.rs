//! `redial dev`: a dispatcher, a worker with the manifest's tools, private Postgres and NATS servers.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, bail};
use redial_servers::Process;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tokio::net::TcpStream;

use super::{cli, folder::Folder};
use crate::poll::until;

/// How long a worker may be silent before the dispatcher treats its attempts as lost; short, to keep the demo short.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// A running `redial dev`.
#[derive(Debug)]
pub(super) struct Dev {
    pub(super) process: Process,
    pub(super) log: PathBuf,
    /// Its `dev.json`.
    file: PathBuf,
}

/// The content of `dev.json`.
#[derive(Debug, Deserialize)]
struct DevFile {
    nats_pid: Option<u32>,
    postgres_pid: Option<u32>,
    nats_url: String,
    database_url: String,
}

/// What `redial dev` prints when it is ready.
#[derive(Debug, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are those of its output")]
pub(super) struct Ready {
    pub(super) nats_url: String,
    pub(super) database_url: String,
    pub(super) http_url: Option<String>,
}

impl Dev {
    /// Starts it; see [`Dev::ready`].
    pub(super) fn start(folder: &Folder) -> anyhow::Result<Self> {
        let mut command = cli::command(&cli::program("redial")?)?;
        command.arg("dev").arg("--folder").arg(folder.path());
        command
            .arg("--tools")
            .arg(folder.tools())
            .arg("--models")
            .arg(folder.models())
            .arg("--agents")
            .arg(folder.agents());
        command
            .args(["--worker-name", "redial-dev", "--drain-grace", "5s", "--lease"])
            .arg(format!("{}ms", LEASE.as_millis()))
            .arg("--json");
        command.stdout(Stdio::piped()).stderr(folder.log("dev")?);
        Ok(Self {
            process: Process::spawn(command)?,
            log: folder.log_path("dev"),
            file: folder.path().join("dev.json"),
        })
    }

    /// Waits until calls can be submitted.
    pub(super) async fn ready(&self, folder: &Folder) -> anyhow::Result<Ready> {
        let stdout = self.process.take_stdout();
        let mut log = folder.log("dev")?;
        let first = tokio::task::spawn_blocking(move || {
            let mut lines = stdout.map(BufReader::new).context("the output was read before")?.lines();
            let first = lines.next().transpose()?.unwrap_or_default();
            writeln!(log, "{first}")?;
            // The rest of its output goes to the log.
            std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| writeln!(log, "{line}")));
            anyhow::Ok(first)
        });
        let first = first.await??;
        let Ok(ready) = serde_json::from_str(&first) else {
            let text = fs::read_to_string(&self.log).unwrap_or_default();
            let last = text.lines().rfind(|line| !line.is_empty()).unwrap_or_default();
            bail!("redial dev did not start; the last line of {}: {last}", self.log.display());
        };
        Ok(ready)
    }

    /// Kills it and its servers with SIGKILL, and waits until none of them answers.
    pub(super) async fn kill(self) -> anyhow::Result<()> {
        let file: DevFile = serde_json::from_slice(&fs::read(&self.file)?)?;
        let servers = [file.postgres_pid, file.nats_pid].into_iter().collect::<Option<Vec<u32>>>();
        for pid in servers.context("dev.json does not name the servers' processes")? {
            kill(pid)?;
        }
        self.process.kill().await;
        for url in [&file.database_url, &file.nats_url] {
            let address = address(url).with_context(|| format!("{url} has no address"))?;
            let refused = async || Ok(TcpStream::connect(address).await.err().map(|_refused| ()));
            until("the killed servers have ended", refused).await?;
        }
        Ok(())
    }
}

/// Kills a process that is not a child of this one.
fn kill(pid: u32) -> anyhow::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).with_context(|| format!("{pid} is not a process id"))?;
    kill_process(pid, Signal::KILL).with_context(|| format!("process {} cannot be killed", pid.as_raw_nonzero()))
}

/// `host:port` of `scheme://user:password@host:port/name`.
fn address(url: &str) -> Option<&str> {
    let rest = url.rsplit_once('@').map(|(_, rest)| rest).or_else(|| url.split_once("://").map(|(_, rest)| rest))?;
    rest.split(['/', '?']).next().filter(|address| address.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_urls() {
        assert_eq!(address("postgres://redial:secret@127.0.0.1:28100/redial?x=1"), Some("127.0.0.1:28100"));
        assert_eq!(address("nats://127.0.0.1:4222"), Some("127.0.0.1:4222"));
        assert_eq!(address("nats://localhost"), None);
    }
}
