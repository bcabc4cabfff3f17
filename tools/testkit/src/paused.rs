//! Stopped processes.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// A process that is stopped with its children (SIGSTOP), all connections open, until this is dropped.
#[derive(Debug)]
pub struct Paused(Vec<u32>);

impl Paused {
    /// Stops the process first, so that it starts no more children, and then its children.
    pub fn new(process: u32) -> Self {
        let mut all = vec![process];
        signal(process, Signal::STOP);
        // A child may be started until the signal has arrived.
        for _ in 0..2 {
            let born: Vec<u32> = children(process).filter(|child| !all.contains(child)).collect();
            for child in &born {
                signal(*child, Signal::STOP);
            }
            all.extend(born);
        }
        Self(all)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        for pid in &self.0 {
            signal(*pid, Signal::CONT);
        }
    }
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // The process may have ended meanwhile.
    let _gone = pid.map(|pid| kill_process(pid, signal));
}

/// Returns the processes that a process has started, read from /proc; empty where there is no /proc.
fn children(parent: u32) -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent_of = move |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    pids.filter(move |pid| parent_of(*pid) == Some(parent))
}
