//! Servers that outlived the process that started them.
//!
//! On Linux the kernel kills a server together with its owner. Where it did not, because the server was started by an older
//! version or changed its user, the server still has the folder's lock file as its standard input: that identifies it,
//! whatever its process id was used for before.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use rustix::process::{Pid, Signal, kill_process};

/// Asks the processes that hold this lock file to end. Only those are asked whose parent does not hold it as well: a
/// server ends its own helpers. Does nothing where `/proc` is missing, or for the processes of another user.
pub(crate) fn stop(lock: &Path) {
    let Ok(lock) = fs::metadata(lock) else { return };
    let wanted = (lock.dev(), lock.ino());
    let holders: Vec<u32> = pids().filter(|pid| input_of(*pid) == Some(wanted)).collect();
    for pid in holders.iter().filter(|pid| parent_of(**pid).is_none_or(|parent| !holders.contains(&parent))) {
        tracing::warn!(pid, "Stopping a server that a process which has ended left running");
        if let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) {
            // Postgres takes this as a fast shutdown, nats-server as an orderly one.
            let _ended_meanwhile = kill_process(pid, Signal::INT);
        }
    }
}

fn pids() -> impl Iterator<Item = u32> {
    let own = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(move |pid| *pid != own)
}

/// Returns device and number of the file that is a process's standard input.
fn input_of(pid: u32) -> Option<(u64, u64)> {
    let input = fs::metadata(format!("/proc/{pid}/fd/0")).ok()?;
    Some((input.dev(), input.ino()))
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}
