//! What Postgres and NATS have in common once they were started.

use std::{
    fs::File,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use crate::{
    Process, ServerError,
    folder::{Folder, Log},
};

/// A server takes this long at most to be ready; recovery after a crash under load is part of it.
const READY: Duration = Duration::from_mins(1);
/// Another program may take the port that we found free; so often we try another one.
const PORT_ATTEMPTS: usize = 5;

/// A started server. The lock is released only after the process has ended.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) process: Process,
    pub(crate) port: u16,
    _lock: File,
}

pub(crate) struct Launch<'a> {
    pub(crate) server: &'static str,
    pub(crate) folder: &'a Folder,
    /// Held by us; the server gets it as its standard input.
    pub(crate) lock: File,
    /// `None`: any.
    pub(crate) port: Option<u16>,
}

impl Launch<'_> {
    /// Starts the server that `command` makes for a port, and waits until `ready` says so.
    pub(crate) fn run(
        self,
        command: impl Fn(u16) -> Result<Command, ServerError>,
        ready: impl Fn(&Process, u16) -> bool,
    ) -> Result<Running, ServerError> {
        let mut attempts = PORT_ATTEMPTS;
        loop {
            let port = self.folder.choose_port(self.server, self.port)?;
            let log = self.folder.log("server.log")?;
            match self.attempt(command(port)?, &log, |process| ready(process, port)) {
                Ok(process) => return Ok(Running { process, port, _lock: self.lock }),
                Err(ServerError::Ended { tail, .. }) if self.port.is_none() && attempts > 1 && port_taken(&tail) => {
                    attempts -= 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn attempt(
        &self,
        mut command: Command,
        log: &Log,
        ready: impl Fn(&Process) -> bool,
    ) -> Result<Process, ServerError> {
        command.stdin(copy(&self.lock, self.folder)?);
        command.stdout(copy(&log.file, self.folder)?).stderr(copy(&log.file, self.folder)?);
        let process = Process::spawn(command)?;
        let deadline = Instant::now() + READY;
        loop {
            if let Some(status) = process.exit_status() {
                return Err(ServerError::Ended {
                    server: self.server,
                    status,
                    log: log.path.clone(),
                    tail: log.tail(),
                });
            }
            if ready(&process) {
                return Ok(process);
            }
            if Instant::now() > deadline {
                let (log, tail) = (log.path.clone(), log.tail());
                return Err(ServerError::NotReady { server: self.server, seconds: READY.as_secs(), log, tail });
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns the same open file once more.
pub(crate) fn copy(file: &File, folder: &Folder) -> Result<File, ServerError> {
    file.try_clone().map_err(ServerError::io("copy an open file in", folder.path()))
}

fn port_taken(tail: &str) -> bool {
    tail.to_ascii_lowercase().contains("address already in use")
}
