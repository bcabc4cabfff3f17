//! SIGKILL for processes that are not our children.

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};

/// Kills a process at once.
pub(super) fn now(pid: u32) -> anyhow::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).with_context(|| format!("{pid} is no process id"))?;
    kill_process(pid, Signal::KILL).with_context(|| format!("process {} cannot be killed", pid.as_raw_nonzero()))
}
