//! Runs the `redial` program as a user does.

use std::{
    fs::File,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};
use redial_servers::Process;
use serde::de::DeserializeOwned;

/// The user's settings of Redial must not change the demo, except for these two, which locate the servers' programs.
const KEPT: [&str; 2] = ["REDIAL_POSTGRES_BIN", "REDIAL_NATS_SERVER"];

/// The path of a program that was built together with this one.
pub(super) fn program(name: &str) -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name(name);
    ensure!(program.is_file(), "{} is missing; ./dev demo builds it", program.display());
    Ok(program)
}

/// A command without the user's settings of Redial.
pub(super) fn command(program: &Path) -> anyhow::Result<Command> {
    let mut command = Process::command(program)?;
    let ours = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.starts_with("REDIAL_"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name) && !KEPT.iter().any(|kept| name == kept)) {
        command.env_remove(name);
    }
    // Instead of a redial.toml in the current folder.
    command.env("REDIAL_CONFIG", "/dev/null").stdin(Stdio::null());
    Ok(command)
}

/// Runs `redial`, and logs its output.
#[derive(Debug)]
pub(crate) struct Cli {
    program: PathBuf,
    log: File,
    nats_url: String,
    database_url: String,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// 0 success, 1 failure, 2 wrong usage; `None` if it was killed.
    code: Option<i32>,
    pub(crate) stdout: String,
    stderr: String,
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
    pub(crate) async fn run(&self, arguments: &[&str]) -> anyhow::Result<CommandOutput> {
        let mut command = command(&self.program)?;
        command.args(arguments).env("REDIAL_NATS_URL", &self.nats_url).env("REDIAL_DATABASE_URL", &self.database_url);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let process = Process::spawn(command)?;
        let (stdout, stderr) = tokio::try_join!(read_all(process.take_stdout()), read_all(process.take_stderr()))?;
        let code = process.ended().await.code();
        let command = format!("redial {}", arguments.join(" "));
        writeln!(&self.log, "$ {command}\n{}{}→ {code:?}\n", shortened(&stdout), stderr)?;
        Ok(CommandOutput { code, stdout, stderr, command })
    }

    /// Runs a command that must succeed and print one JSON value.
    pub(crate) async fn json<T: DeserializeOwned>(&self, arguments: &[&str]) -> anyhow::Result<T> {
        self.run(&[arguments, &["--json"]].concat()).await?.expect_success()?.json()
    }

    /// Runs a command that must succeed and print one JSON value per line.
    pub(crate) async fn lines<T: DeserializeOwned>(&self, arguments: &[&str]) -> anyhow::Result<Vec<T>> {
        let output = self.run(&[arguments, &["--json"]].concat()).await?.expect_success()?;
        let lines = output.stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        lines.with_context(|| format!("`{}` printed something other than lines of JSON", output.command))
    }
}

impl CommandOutput {
    /// An error if the exit code is not 0.
    pub(crate) fn expect_success(self) -> anyhow::Result<Self> {
        let Self { code, stderr, command, .. } = &self;
        ensure!(*code == Some(0), "`{command}` ended with exit code {code:?}: {}", stderr.trim());
        Ok(self)
    }

    /// Its standard output as one JSON value.
    fn json<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        serde_json::from_str(&self.stdout)
            .with_context(|| format!("`{}` printed something unexpected: {}", self.command, shortened(&self.stdout)))
    }
}

/// Reads a pipe to its end, on a thread for blocking work.
async fn read_all(pipe: Option<impl Read + Send + 'static>) -> anyhow::Result<String> {
    let read = tokio::task::spawn_blocking(move || {
        let mut text = Vec::new();
        pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut text)).map(|_| text)
    });
    Ok(String::from_utf8_lossy(&read.await??).into_owned())
}

/// The first characters, about as many as fit on a screen.
fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 2000;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…\n", &text[..end]),
        None => text.to_owned(),
    }
}
