//! A running program and everything that it started.

use std::{io, process::ExitStatus};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::reaper::{self, Remains};

/// Dropped before the program ended, it kills the program and every descendant, in a thread of its own.
pub(super) struct Tree {
    child: Option<Child>,
    /// The program's id, which is its group's as well.
    pid: Option<Pid>,
    cookie: String,
    ended: bool,
}

impl Tree {
    /// `cookie` is the value of [`reaper::COOKIE`] in the program's environment.
    pub(super) fn new(child: Child, cookie: String) -> Self {
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { child: Some(child), pid, cookie, ended: false }
    }

    /// The program's ends of the three pipes, once.
    pub(super) fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        match &mut self.child {
            Some(child) => (child.stdin.take(), child.stdout.take(), child.stderr.take()),
            None => (None, None, None),
        }
    }

    /// Waits for the program's own end, any number of times. What it left behind in its process group is then killed.
    pub(super) async fn exited(&mut self) -> io::Result<ExitStatus> {
        let Some(child) = &mut self.child else { return Err(io::Error::other("the program was given up")) };
        let status = child.wait().await?;
        if !self.ended {
            self.ended = true;
            // The id was freed a moment ago, and ids are handed out in turn: it is nobody else's yet.
            if let Some(group) = self.pid {
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
        Ok(status)
    }

    /// Kills descendants that moved to a session of their own, after the program's end.
    pub(super) fn kill_leftovers(&self) {
        reaper::bury(Remains { child: None, pid: None, cookie: self.cookie.clone() });
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.ended {
            let cookie = std::mem::take(&mut self.cookie);
            reaper::bury(Remains { child: self.child.take(), pid: self.pid, cookie });
        }
    }
}
