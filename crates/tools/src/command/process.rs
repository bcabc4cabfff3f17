//! The processes of this machine, read from `/proc`.

use std::fs;

use rustix::process::Pid;

/// A running process, not a zombie.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) parent: i32,
    pub(super) group: i32,
}

/// Lists all running processes. One that ends meanwhile is left out.
pub(super) fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// Returns the value of a variable in a process's initial environment; `None` for processes of other users.
pub(super) fn variable(pid: Pid, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
    let value =
        environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    String::from_utf8(value?.to_vec()).ok()
}

fn read(id: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    parse(Pid::from_raw(id)?, &stat)
}

/// Parses `pid (name) state parent group …`; the name may hold spaces and parentheses.
fn parse(pid: Pid, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let process = Process { pid, parent: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? };
    (!matches!(state, "Z" | "X")).then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_anything() {
        let process = parse(Pid::INIT, "1 (a) b) S 7 9 9 0").unwrap();
        assert_eq!((process.parent, process.group), (7, 9));
        assert!(parse(Pid::INIT, "1 (a) Z 7 9 9 0").is_none());
        assert!(parse(Pid::INIT, "").is_none());
    }

    #[test]
    fn this_process_is_there() {
        let own = rustix::process::getpid();
        assert!(all().iter().any(|process| process.pid == own));
        assert_eq!(variable(own, "PATH"), std::env::var("PATH").ok());
        assert_eq!(variable(own, "PAT"), None);
    }
}
