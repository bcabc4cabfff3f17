//! Processor time of a tree of processes, from `/proc`.

use std::{collections::HashMap, fs, time::Duration};

/// Ticks per second of `/proc/<pid>/stat`; 100 on every Linux that Rust runs on (`sysconf(_SC_CLK_TCK)`).
const TICKS: u64 = 100;

/// Measures processes and all their descendants, living and dead.
pub(super) struct CpuMeter(Vec<u32>);

impl CpuMeter {
    /// Of a running stack; `None` measures nothing.
    pub(super) fn of(stack: Option<u32>) -> Self {
        Self(stack.into_iter().collect())
    }

    /// Of a running stack and of this process, which does the floor's work itself.
    pub(super) fn with_own(stack: Option<u32>) -> Self {
        Self(stack.into_iter().flat_map(|pid| [pid, std::process::id()]).collect())
    }

    /// Processor time so far.
    pub(super) fn read(&self) -> Option<Duration> {
        if self.0.is_empty() {
            return None;
        }
        let stats: HashMap<u32, Stat> = fs::read_dir("/proc")
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(|pid| Some((pid, Stat::read(pid)?)))
            .collect();
        let in_tree = |mut pid: u32| {
            while let Some(stat) = stats.get(&pid) {
                if self.0.contains(&pid) {
                    return true;
                }
                pid = stat.parent;
            }
            false
        };
        let ticks: u64 = stats.iter().filter(|(pid, _)| in_tree(**pid)).map(|(_, stat)| stat.ticks).sum();
        Some(Duration::from_millis(ticks * 1000 / TICKS))
    }
}

struct Stat {
    parent: u32,
    ticks: u64,
}

impl Stat {
    /// Fields 4 (parent) and 14 to 17 (own and waited-for children's time, user and system) of proc(5).
    fn read(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
        Some(Self { parent: fields.get(1)?.parse().ok()?, ticks })
    }
}
