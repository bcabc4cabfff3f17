//! What a run costs: processor time and memory from `/proc`, bytes written from Postgres.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    time::Duration,
};

use serde::Serialize;

use crate::database::Database;

/// Ticks per second of `/proc/<pid>/stat`; 100 on every Linux that Rust runs on (`sysconf(_SC_CLK_TCK)`).
const TICKS: u64 = 100;

/// What uses processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    /// This process: who submits, and all of a baseline.
    Client,
    Dispatcher,
    Worker,
    Postgres,
    Nats,
    /// Any other process that this one started.
    Other,
}

#[derive(Debug)]
pub(crate) struct Cost {
    /// Seconds of processor time of all processes; empty where `/proc` is missing.
    pub(crate) parts: BTreeMap<Part, f64>,
    /// KB of write-ahead log.
    pub(crate) wal: f64,
    /// KB by which tables and indexes grew.
    pub(crate) tables: f64,
}

impl Cost {
    /// Adds up the seconds of processor time of all parts.
    pub(crate) fn cpu(&self) -> Option<f64> {
        (!self.parts.is_empty()).then(|| self.parts.values().sum())
    }
}

/// What was used up to a point in the run.
pub(crate) struct Reading {
    cpu: BTreeMap<Part, Duration>,
    wal: u64,
    tables: u64,
}

impl Reading {
    /// Reads what was used so far; disk only for the tables of a schema.
    pub(crate) async fn take(database: &Database, schema: &str) -> anyhow::Result<Self> {
        let (wal, tables) = (database.wal_bytes().await?, database.table_bytes(schema).await?);
        Ok(Self { cpu: cpu().unwrap_or_default(), wal, tables })
    }

    /// Returns what it cost from here to `later`.
    pub(crate) fn until(&self, later: &Self, calls: u32) -> Cost {
        let thousands = f64::from(calls) / 1000.0;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52 bytes")]
        let kb = |before: u64, after: u64| after.saturating_sub(before) as f64 / 1000.0 / thousands;
        let used = later.cpu.iter().map(|(part, later)| {
            let before = self.cpu.get(part).copied().unwrap_or_default();
            (*part, later.saturating_sub(before).as_secs_f64() / thousands)
        });
        Cost { parts: used.collect(), wal: kb(self.wal, later.wal), tables: kb(self.tables, later.tables) }
    }
}

/// Reads the processor time so far of this process and all its descendants, living and dead.
fn cpu() -> Option<BTreeMap<Part, Duration>> {
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
    let mut parts = BTreeMap::<Part, Duration>::new();
    for (pid, stat) in stats.iter().filter(|(pid, _)| ours(**pid)) {
        *parts.entry(Part::of(*pid, &stat.name)).or_default() += Duration::from_millis(stat.ticks * 1000 / TICKS);
    }
    Some(parts)
}

impl Part {
    fn of(pid: u32, name: &str) -> Self {
        match name {
            _ if pid == std::process::id() => Self::Client,
            "postgres" => Self::Postgres,
            "nats-server" => Self::Nats,
            _ => Self::of_command(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()),
        }
    }

    /// Tells a part by its role, which is an argument of its own; a program of an older commit may have any name.
    fn of_command(line: &[u8]) -> Self {
        let has = |role: &[u8]| line.split(|byte| *byte == 0).any(|argument| argument == role);
        match (has(b"dispatcher"), has(b"worker")) {
            (true, _) => Self::Dispatcher,
            (false, true) => Self::Worker,
            (false, false) => Self::Other,
        }
    }
}

struct Stat {
    name: String,
    parent: u32,
    ticks: u64,
}

impl Stat {
    /// Reads fields 2 (name), 4 (parent) and 14 to 17 (own and waited-for children's time, user and system) of proc(5).
    fn read(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
        let name = name.split_once('(')?.1.to_owned();
        Some(Self { name, parent: fields.get(1)?.parse().ok()?, ticks })
    }
}

/// Returns the most memory that a process ever held, in MB (10^6 bytes).
pub(crate) fn peak_memory(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}
