//! A running program and everything that it started.

use std::{io, process::ExitStatus};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::killer::{self, Target};

/// A program and its descendants. If it is dropped before the program ended, another thread kills all of them.
pub(super) struct Tree {
    child: Option<Child>,
    /// The program's id, which is also the id of its process group.
    pid: Option<Pid>,
    marker: String,
    ended: bool,
}

impl Tree {
    /// Takes a started program. `marker` is the value of [`killer::MARKER`] in its environment.
    pub(super) fn new(child: Child, marker: String) -> Self {
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { child: Some(child), pid, marker, ended: false }
    }

    /// Takes the three pipes to the program; `None` after the first call.
    pub(super) fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        match &mut self.child {
            Some(child) => (child.stdin.take(), child.stdout.take(), child.stderr.take()),
            None => (None, None, None),
        }
    }

    /// Waits until the program itself ends; may be called repeatedly. Kills the processes that it left in its group.
    pub(super) async fn exited(&mut self) -> io::Result<ExitStatus> {
        let Some(child) = &mut self.child else { return Err(io::Error::other("the program is being killed")) };
        let status = child.wait().await?;
        if !self.ended {
            self.ended = true;
            // The id was freed a moment ago. The kernel assigns ids in turn, so no other process has it yet.
            if let Some(group) = self.pid {
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
        Ok(status)
    }

    /// Kills descendants that moved to their own session, after the program's end.
    pub(super) fn kill_leftovers(&self) {
        killer::kill(Target { child: None, pid: None, marker: self.marker.clone() });
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.ended {
            let marker = std::mem::take(&mut self.marker);
            killer::kill(Target { child: self.child.take(), pid: self.pid, marker });
        }
    }
}
