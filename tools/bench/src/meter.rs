//! What a run costs: processor time and memory from `/proc`, bytes written from Postgres.

use std::{collections::HashMap, fs, time::Duration};

use crate::database::Database;

/// Ticks per second of `/proc/<pid>/stat`; 100 on every Linux that Rust runs on (`sysconf(_SC_CLK_TCK)`).
const TICKS: u64 = 100;

/// What 1,000 calls cost.
pub(crate) struct Cost {
    /// Seconds of processor time of all processes: servers, roles, and the client.
    pub(crate) cpu: Option<f64>,
    /// KB of write-ahead log.
    pub(crate) wal: f64,
    /// KB by which tables and indexes grew.
    pub(crate) tables: f64,
}

/// What was used up to a point in the run.
pub(crate) struct Reading {
    cpu: Option<Duration>,
    wal: u64,
    tables: u64,
}

impl Reading {
    /// What was used so far; disk only for the tables of a schema.
    pub(crate) async fn take(database: &Database, schema: &str) -> anyhow::Result<Self> {
        let (wal, tables) = (database.wal_bytes().await?, database.table_bytes(schema).await?);
        Ok(Self { cpu: cpu(), wal, tables })
    }

    /// What it cost from here to `later`.
    pub(crate) fn until(&self, later: &Self, calls: u32) -> Cost {
        let thousands = f64::from(calls) / 1000.0;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52 bytes")]
        let kb = |before: u64, after: u64| after.saturating_sub(before) as f64 / 1000.0 / thousands;
        Cost {
            cpu: self.cpu.zip(later.cpu).map(|(from, to)| to.saturating_sub(from).as_secs_f64() / thousands),
            wal: kb(self.wal, later.wal),
            tables: kb(self.tables, later.tables),
        }
    }
}

/// Processor time so far of this process and all its descendants, living and dead.
fn cpu() -> Option<Duration> {
    let stats: HashMap<u32, Stat> = fs::read_dir("/proc")
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, Stat::read(pid)?)))
        .collect();
    let ours = |mut pid: u32| {
        while let Some(stat) = stats.get(&pid) {
            if pid == std::process::id() {
                return true;
            }
            pid = stat.parent;
        }
        false
    };
    let ticks: u64 = stats.iter().filter(|(pid, _)| ours(**pid)).map(|(_, stat)| stat.ticks).sum();
    Some(Duration::from_millis(ticks * 1000 / TICKS))
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

/// The most memory that a process ever held, in MiB.
pub(crate) fn peak_memory(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib / 1024.0)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_memory_and_is_in_its_own_tree() {
        assert!(peak_memory(std::process::id()).unwrap() > 0.5);
        let parent = Stat::read(std::process::id()).unwrap().parent;
        assert_eq!(parent, std::os::unix::process::parent_id());
        assert!(cpu().is_some());
    }

    #[test]
    fn costs_are_for_a_thousand_calls() {
        let at = |cpu, wal, tables| Reading { cpu: Some(Duration::from_millis(cpu)), wal, tables };
        let cost = at(100, 1_000, 5_000).until(&at(300, 5_000, 4_000), 4_000);
        assert!((cost.cpu.unwrap() - 0.05).abs() < 1e-9);
        assert!((cost.wal - 1.0).abs() < 1e-9);
        assert!(cost.tables.abs() < 1e-9);
    }
}
