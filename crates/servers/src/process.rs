//! A child process that dies with this process and is always reaped.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStderr, ChildStdout, Command, ExitStatus},
    sync::{
        Arc, LazyLock,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::sync::watch;

use crate::{ServerError, programs, user::User};

/// A running child. Dropping it kills it. On Linux it also dies with this process, however that ends.
#[derive(Debug)]
pub struct Process {
    child: Arc<Mutex<Child>>,
    pid: u32,
    ended: watch::Receiver<Option<ExitStatus>>,
}

impl Process {
    /// Makes a command for [`Process::spawn`], to which arguments, environment and streams can be added. It runs
    /// `setpriv`, which asks the kernel to kill the child with this process and then executes `program`.
    pub fn command(program: impl AsRef<OsStr>) -> Result<Command, ServerError> {
        Self::command_as(program, None)
    }

    pub(crate) fn command_as(program: impl AsRef<OsStr>, user: Option<&User>) -> Result<Command, ServerError> {
        if !cfg!(target_os = "linux") {
            return Ok(Command::new(program));
        }
        let mut command = Command::new(programs::setpriv()?);
        command.args(["--pdeathsig", "KILL"]);
        if let Some(user) = user {
            command.arg(format!("--reuid={}", user.uid)).arg(format!("--regid={}", user.gid)).arg("--clear-groups");
        }
        command.arg("--").arg(program);
        Ok(command)
    }

    /// Makes a command for a server, with no more of the environment of this process than programs need: every process
    /// of the server's user may read it.
    pub(crate) fn server(program: impl AsRef<OsStr>, user: Option<&User>) -> Result<Command, ServerError> {
        let mut command = Self::command_as(program, user)?;
        command.env_clear();
        command.envs(
            ["PATH", "HOME", "LD_LIBRARY_PATH", "TMPDIR", "TZ"]
                .iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
        Ok(command)
    }

    /// Starts a command made by [`Process::command`], in its own process group: Ctrl-C in a terminal reaches only this
    /// process, which decides what it means for the child.
    pub fn spawn(mut command: Command) -> Result<Self, ServerError> {
        command.process_group(0);
        let program = Path::new(command.get_program()).to_owned();
        let child = launch(command).map_err(ServerError::io("start", &program))?;
        let pid = child.id();
        let child = Arc::new(Mutex::new(child));
        let (sender, ended) = watch::channel(None);
        let shared = Arc::clone(&child);
        let waiter = thread::Builder::new().name(format!("wait-{pid}"));
        let process = Self { child, pid, ended };
        waiter.spawn(move || reap(&shared, &sender)).map_err(ServerError::io("start a thread for", &program))?;
        Ok(process)
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns how it ended; `None` while it runs.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        *self.ended.borrow()
    }

    pub async fn ended(&self) -> ExitStatus {
        let mut ended = self.ended.clone();
        loop {
            if let Some(status) = *ended.borrow_and_update() {
                return status;
            }
            if ended.changed().await.is_err() {
                return self.reaped();
            }
        }
    }

    /// Sends a signal; does nothing after its end.
    pub fn signal(&self, signal: Signal) {
        let mut child = lock(&self.child);
        // The child is not reaped while the lock is held, so its id cannot belong to another process.
        if matches!(child.try_wait(), Ok(None)) {
            let _gone_already = kill_process(Pid::from_child(&child), signal);
        }
    }

    /// Kills it (SIGKILL) and waits until it has ended.
    pub async fn kill(&self) -> ExitStatus {
        self.signal(Signal::KILL);
        self.ended().await
    }

    /// Asks it to end with `signal`, and kills it after `grace`.
    pub async fn stop(&self, signal: Signal, grace: Duration) -> ExitStatus {
        self.signal(signal);
        match tokio::time::timeout(grace, self.ended()).await {
            Ok(status) => status,
            Err(_) => self.kill().await,
        }
    }

    /// Takes its standard output, if the command set `Stdio::piped()`; once.
    pub fn take_stdout(&self) -> Option<ChildStdout> {
        lock(&self.child).stdout.take()
    }

    /// Takes its standard error, if the command set `Stdio::piped()`; once.
    pub fn take_stderr(&self) -> Option<ChildStderr> {
        lock(&self.child).stderr.take()
    }

    /// Blocks this thread until it ends; `None` if it still runs after `patience`.
    pub(crate) fn wait(&self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        while self.exit_status().is_none() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        self.exit_status()
    }

    /// Returns how it ended, for the case that the waiting thread panicked.
    fn reaped(&self) -> ExitStatus {
        lock(&self.child).wait().unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock()
}

/// Waits without reaping, so that [`Process::signal`] never meets a reused id, then reaps.
fn reap(child: &Mutex<Child>, sender: &watch::Sender<Option<ExitStatus>>) {
    let pid = Pid::from_child(&lock(child));
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {}
    let status = lock(child).wait().unwrap_or_default();
    sender.send_replace(Some(status));
}

/// Returns the name of the program that a process runs. `None` if there is no such process, or only a zombie: one whose
/// parent died remains where the first process of a container does not reap it. Read from `/proc`; on other systems
/// always `None`.
pub(crate) fn living(pid: &str) -> Option<String> {
    let pid: u32 = pid.trim().parse().ok()?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = stat.rsplit_once(") ")?;
    let (_, name) = head.split_once('(')?;
    (!tail.starts_with(['Z', 'X'])).then(|| name.to_owned())
}

type Request = (Command, Sender<io::Result<Child>>);

/// The thread that starts all children. The kernel's "kill me when my parent dies" means the parent *thread*, so that
/// thread must live as long as this process; a tokio worker or a test's thread does not.
static LAUNCHER: LazyLock<io::Result<Sender<Request>>> = LazyLock::new(|| {
    let (sender, requests): (_, Receiver<Request>) = channel();
    thread::Builder::new().name("launcher".to_owned()).spawn(move || {
        for (mut command, reply) in requests {
            let _asker_gone = reply.send(command.spawn());
        }
    })?;
    Ok(sender)
});

fn launch(command: Command) -> io::Result<Child> {
    let launcher = LAUNCHER.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
    let gone = || io::Error::other("the launcher thread has ended");
    let (reply, answer) = channel();
    launcher.send((command, reply)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        os::unix::process::ExitStatusExt,
        process::Stdio,
    };

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Process::command("sh").unwrap();
        command.args(["-c", script]).stdout(Stdio::piped());
        command
    }

    #[tokio::test]
    async fn the_exit_status_of_a_child_is_known() {
        let process = Process::spawn(shell("exit 3")).unwrap();
        assert_eq!(process.ended().await.code(), Some(3));
        assert_eq!(process.exit_status().and_then(|status| status.code()), Some(3));
        process.signal(Signal::KILL);
    }

    #[tokio::test]
    async fn a_child_that_does_not_stop_is_killed() {
        let process = Process::spawn(shell("trap '' TERM; echo ready; while :; do sleep 1; done")).unwrap();
        let mut line = String::new();
        BufReader::new(process.take_stdout().unwrap()).read_line(&mut line).unwrap();
        let status = process.stop(Signal::TERM, Duration::from_millis(100)).await;
        assert_eq!(status.signal(), Some(9));
        assert!(!Path::new(&format!("/proc/{}", process.pid())).exists(), "not reaped");
    }

    #[tokio::test]
    async fn a_dropped_child_is_killed_and_reaped() {
        let process = Process::spawn(shell("echo ready; exec sleep 1000")).unwrap();
        let mut out = BufReader::new(process.take_stdout().unwrap());
        let mut ended = process.ended.clone();
        drop(process);
        ended.wait_for(Option::is_some).await.unwrap();
        let mut rest = String::new();
        while out.read_line(&mut rest).unwrap() > 0 {}
        assert_eq!(rest.trim_end_matches("ready\n"), "");
    }

    #[test]
    fn a_zombie_is_not_alive() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id().to_string();
        assert!(living(&pid).is_some());
        child.kill().unwrap();
        let id = WaitId::Pid(Pid::from_child(&child));
        waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert!(Path::new(&format!("/proc/{pid}")).exists());
        assert_eq!(living(&pid), None);
        child.wait().unwrap();
        assert_eq!(living("no number"), None);
    }

    #[test]
    fn a_missing_program_is_named() {
        let mut command = Process::command("/nowhere/at/all").unwrap();
        command.stderr(Stdio::piped());
        let process = Process::spawn(command).unwrap();
        let mut text = String::new();
        BufReader::new(process.take_stderr().unwrap()).read_line(&mut text).unwrap();
        assert!(text.contains("/nowhere/at/all"), "{text}");
        assert_eq!(process.wait(Duration::from_secs(10)).and_then(|status| status.code()), Some(127));
    }
}
