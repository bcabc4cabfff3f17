//! The `redial` program, as a user runs it.

use std::{
    fs::File,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail, ensure};
use redial_servers::Process;
use serde::de::DeserializeOwned;

/// Settings of Redial in the spectator's environment must not change the demo; these two say where servers are found.
const KEPT: [&str; 2] = ["REDIAL_POSTGRES_BIN", "REDIAL_NATS_SERVER"];

/// A program that was built together with this one.
pub(super) fn program(name: &str) -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name(name);
    ensure!(program.is_file(), "{} is missing; ./dev demo builds it", program.display());
    Ok(program)
}

/// A command of ours that knows nothing of the surroundings' settings.
pub(super) fn command(program: &Path) -> anyhow::Result<Command> {
    let mut command = Process::command(program)?;
    let ours = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.starts_with("REDIAL_"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name) && !KEPT.iter().any(|kept| name == kept)) {
        command.env_remove(name);
    }
    // Instead of a redial.toml that may lie here.
    command.env("REDIAL_CONFIG", "/dev/null").stdin(Stdio::null());
    Ok(command)
}

/// Runs `redial`.
#[derive(Debug)]
pub(crate) struct Cli {
    program: PathBuf,
    log: File,
    nats_url: String,
    database_url: String,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// 0 done, 1 failed, 2 used wrongly; `None` if it was killed.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    command: String,
}

impl Cli {
    pub(super) fn new(program: PathBuf, log: File) -> Self {
        Self { program, log, nats_url: String::new(), database_url: String::new() }
    }

    pub(super) fn connect(&mut self, nats_url: &str, database_url: &str) {
        nats_url.clone_into(&mut self.nats_url);
        database_url.clone_into(&mut self.database_url);
    }

    /// Runs `redial` with these arguments until it ends.
    pub(crate) async fn run(&self, arguments: &[&str]) -> anyhow::Result<Ended> {
        let mut command = command(&self.program)?;
        command.args(arguments).env("REDIAL_NATS_URL", &self.nats_url).env("REDIAL_DATABASE_URL", &self.database_url);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let process = Process::spawn(command)?;
        let (stdout, stderr) = tokio::try_join!(all_of(process.take_stdout()), all_of(process.take_stderr()))?;
        let code = process.ended().await.code();
        let command = format!("redial {}", arguments.join(" "));
        writeln!(&self.log, "$ {command}\n{}{}→ {code:?}\n", shortened(&stdout), stderr)?;
        Ok(Ended { code, stdout, stderr, command })
    }

    /// Runs a command that must succeed and print one JSON value.
    pub(crate) async fn json<T: DeserializeOwned>(&self, arguments: &[&str]) -> anyhow::Result<T> {
        self.run(&[arguments, &["--json"]].concat()).await?.expect_success()?.json()
    }

    /// Runs a command that must succeed and print a line of JSON for each thing.
    pub(crate) async fn lines<T: DeserializeOwned>(&self, arguments: &[&str]) -> anyhow::Result<Vec<T>> {
        let ended = self.run(&[arguments, &["--json"]].concat()).await?.expect_success()?;
        let lines = ended.stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        lines.with_context(|| format!("{} printed no lines of JSON", ended.command))
    }
}

impl Ended {
    /// An error if the exit code is another than 0.
    pub(crate) fn expect_success(self) -> anyhow::Result<Self> {
        self.expect_code(0)
    }

    /// An error if the exit code is another.
    pub(crate) fn expect_code(self, code: i32) -> anyhow::Result<Self> {
        if self.code == Some(code) {
            return Ok(self);
        }
        let Self { code: found, stderr, command, .. } = self;
        bail!("`{command}` ended with {found:?}, not {code}: {}", stderr.trim())
    }

    /// Its standard output as one JSON value.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        serde_json::from_str(&self.stdout)
            .with_context(|| format!("`{}` printed something unexpected: {}", self.command, shortened(&self.stdout)))
    }
}

/// Reads a pipe to its end, where it holds up nothing.
async fn all_of(pipe: Option<impl Read + Send + 'static>) -> anyhow::Result<String> {
    let read = tokio::task::spawn_blocking(move || {
        let mut text = Vec::new();
        pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut text)).map(|_| text)
    });
    Ok(String::from_utf8_lossy(&read.await??).into_owned())
}

/// At most a screen of it.
fn shortened(text: &str) -> String {
    const MOST: usize = 2000;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…\n", &text[..end]),
        None => text.to_owned(),
    }
}
