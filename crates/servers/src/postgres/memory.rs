//! Settings of Postgres by the memory of this machine.
//!
//! Buffers are anonymous memory that is mapped, not files in `/dev/shm`, which is small in containers; a page of them takes
//! memory once it is used. What takes memory at once is what describes them, about a fortieth of the whole.

use std::{
    fs,
    path::{Path, PathBuf},
};

const MIB: u64 = 1024 * 1024;
/// In MiB. The least is Postgres's own default; beyond the most, a machine for development gains nothing.
const LEAST: u64 = 128;
const MOST: u64 = 8 * 1024;

/// What bounds the memory of a new process, in bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Limits {
    /// Of the machine and of the control groups, which containers have.
    memory: Vec<u64>,
    /// What may still be promised, if the kernel promises no more than it has (`vm.overcommit_memory` 2).
    promises: Option<u64>,
}

/// Returns settings for a Postgres that may use a sensible part of this machine: `shared_buffers` is a quarter of its
/// memory, or of what its control groups allow, from 128 MiB to 8 GiB. Without `/proc` it is 128 MiB.
pub fn settings_for_machine() -> Vec<(String, String)> {
    let size = format!("{}MB", shared_buffers(&limits(Path::new("/"))));
    vec![("shared_buffers".to_owned(), size)]
}

/// Returns the size in MiB.
fn shared_buffers(limits: &Limits) -> u64 {
    let quarter = limits.memory.iter().min().map_or(0, |memory| memory / 4);
    let promised = limits.promises.map_or(quarter, |left| quarter.min(left / 2));
    (promised / MIB).clamp(LEAST, MOST)
}

/// Reads `proc` and `sys/fs/cgroup` below a folder.
fn limits(root: &Path) -> Limits {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let strict = number(&root.join("proc/sys/vm/overcommit_memory")) == Some(2);
    let left = || Some(kib(&meminfo, "CommitLimit:")?.saturating_sub(kib(&meminfo, "Committed_AS:")?));
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let of_groups = groups.lines().flat_map(|line| limit_files(root, line)).filter_map(|file| number(&file));
    Limits {
        memory: kib(&meminfo, "MemTotal:").into_iter().chain(of_groups).collect(),
        promises: if strict { left() } else { None },
    }
}

/// Lists the files with the limits of a control group and those above it; `line` is `<number>:<controllers>:<path>`. In
/// a container the path may be that of the host, of which only the root is there to see.
fn limit_files(root: &Path, line: &str) -> Vec<PathBuf> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return Vec::new() };
    let (base, names): (_, &[&str]) = match controllers {
        "" => ("sys/fs/cgroup", &["memory.max", "memory.high"]),
        _ if controllers.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", &["memory.limit_in_bytes"])
        }
        _ => return Vec::new(),
    };
    let path = Path::new(path.trim_start_matches('/'));
    path.ancestors().flat_map(|group| names.iter().map(move |name| root.join(base).join(group).join(name))).collect()
}

/// Reads a file with one number; `None` if it is missing, or says `max`.
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Reads a value of `/proc/meminfo`, in bytes.
fn kib(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1024 * MIB;

    fn write(root: &Path, file: &str, text: &str) {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    #[test]
    fn a_quarter_of_the_smallest_limit_within_bounds() {
        let of = |memory: &[u64], promises| shared_buffers(&Limits { memory: memory.to_vec(), promises });
        assert_eq!(of(&[16 * GIB], None), 4096);
        assert_eq!(of(&[64 * GIB, 2 * GIB, 8 * GIB], None), 512);
        assert_eq!(of(&[1024 * GIB, 9_223_372_036_854_771_712], None), MOST);
        assert_eq!(of(&[256 * MIB], None), LEAST);
        assert_eq!(of(&[], None), LEAST);
        assert_eq!(of(&[16 * GIB], Some(2 * GIB)), 1024, "strict promises");
        assert_eq!(of(&[16 * GIB], Some(0)), LEAST);
    }

    #[test]
    fn limits_of_both_versions_of_control_groups_and_of_those_above_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(limits(root), Limits::default());
        write(root, "proc/meminfo", "MemTotal:       1000 kB\nCommitLimit:  900 kB\nCommitted_AS:  400 kB\n");
        write(root, "proc/self/cgroup", "3:cpu,memory:/a/b\n2:pids:/x\n0::/c/d\n");
        assert_eq!(limits(root), Limits { memory: vec![1_024_000], promises: None });
        write(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n");
        write(root, "sys/fs/cgroup/c/d/memory.max", "max\n");
        write(root, "sys/fs/cgroup/c/d/memory.high", "7000\n");
        write(root, "sys/fs/cgroup/c/memory.max", "6000\n");
        write(root, "proc/sys/vm/overcommit_memory", "2\n");
        let found = limits(root);
        assert_eq!(found, Limits { memory: vec![1_024_000, 5_000, 7_000, 6_000], promises: Some(500 * 1024) });
    }
}
