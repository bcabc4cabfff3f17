//! A program under test, as a process that can be watched, paused and killed.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use redial_servers::Signal;
use tokio::sync::watch;

/// How long a line may take.
const PATIENCE: Duration = Duration::from_mins(5);
/// How long the rest of the output may take to be read once the program has ended.
const REST: Duration = Duration::from_secs(2);

/// A running program. Dropping it kills it; it also dies with the test process.
#[derive(Debug)]
pub struct Process {
    inner: redial_servers::Process,
    lines: watch::Receiver<Vec<String>>,
}

impl Process {
    /// Starts a program; `set_up` adds arguments, environment and folder. Both output streams are captured by line.
    pub fn start(program: impl AsRef<Path>, set_up: impl FnOnce(&mut Command)) -> Self {
        let mut command = redial_servers::Process::command(program.as_ref()).unwrap_or_else(|e| panic!("{e}"));
        set_up(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let inner = redial_servers::Process::spawn(command).unwrap_or_else(|e| panic!("{e}"));
        let (sender, lines) = watch::channel(Vec::new());
        capture(inner.take_stdout().unwrap(), sender.clone());
        capture(inner.take_stderr().unwrap(), sender);
        Self { inner, lines }
    }

    /// Waits for a line with this text, whenever it was printed, and returns it. Panics, and shows the output, if the
    /// program ends without it.
    pub async fn line(&self, text: &str) -> String {
        let mut lines = self.lines.clone();
        let found = |lines: &Vec<String>| lines.iter().find(|line| line.contains(text)).cloned();
        let waited = tokio::time::timeout(PATIENCE, lines.wait_for(|lines| found(lines).is_some())).await;
        let problem = match waited {
            Ok(Ok(lines)) => return found(&lines).unwrap(),
            Ok(Err(_ended)) => "the program ended without",
            Err(_late) => "the program still runs, without",
        };
        panic!("{problem} a line {text:?}; its output:\n{}", self.output())
    }

    /// Returns all lines so far.
    pub fn output(&self) -> String {
        self.lines.borrow().join("\n")
    }

    pub fn pid(&self) -> u32 {
        self.inner.pid()
    }

    pub fn runs(&self) -> bool {
        self.inner.exit_status().is_none()
    }

    /// Waits until it has ended. [`Process::output`] is whole then, unless a process that it started still holds the streams.
    pub async fn ended(&self) -> ExitStatus {
        let status = self.inner.ended().await;
        let mut lines = self.lines.clone();
        let _captured = tokio::time::timeout(REST, lines.wait_for(|_| false)).await;
        status
    }

    /// Sends SIGKILL, and waits until it has ended.
    pub async fn kill(&self) -> ExitStatus {
        self.inner.signal(Signal::KILL);
        self.ended().await
    }

    /// Sends SIGTERM: asks it to end. Wait with [`Process::ended`].
    pub fn terminate(&self) {
        self.inner.signal(Signal::TERM);
    }

    /// Sends SIGINT: Ctrl-C.
    pub fn interrupt(&self) {
        self.inner.signal(Signal::INT);
    }

    /// Sends SIGSTOP: it stops, with all its connections open.
    pub fn pause(&self) {
        self.inner.signal(Signal::STOP);
    }

    /// Sends SIGCONT: it continues.
    pub fn resume(&self) {
        self.inner.signal(Signal::CONT);
    }
}

/// Captures a stream; ends when every process that holds it has ended.
fn capture(stream: impl Read + Send + 'static, sender: watch::Sender<Vec<String>>) {
    thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
            sender.send_modify(|lines| lines.push(text));
            line.clear();
        }
    });
}
