//! Kills a program with everything that it started.
//!
//! Killing a process group misses processes that called `setsid`. So descendants are recognised in three ways: by the
//! process group, by their parents, and by a marker in the environment that they inherited. Killing is repeated until
//! none is left. Only a process that both cleared its environment and lost its parents before the first scan escapes.
//!
//! This happens in its own thread, because reading `/proc` takes milliseconds and futures are dropped on threads that must
//! not block.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::{
        OnceLock,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{process::Child, sync::oneshot};

use super::process::{self, Process};

/// The environment variable that marks all processes of an attempt: `<call>.<attempt>`.
pub(super) const MARKER: &str = "REDIAL_ATTEMPT";

/// The pause between two scans.
const PAUSE: Duration = Duration::from_millis(5);
/// A process that survives SIGKILL for this long hangs in the kernel; it is given up with a warning.
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);

/// The processes to kill.
pub(super) struct Target {
    /// Kept until all processes are dead, so that the kernel cannot reuse the group's id.
    #[expect(dead_code, reason = "only its drop matters")]
    pub(super) child: Option<Child>,
    /// The id of the program and its group; set only together with the child.
    pub(super) pid: Option<Pid>,
    pub(super) marker: String,
}

enum Request {
    Kill(Box<Target>),
    Wait(oneshot::Sender<()>),
}

static KILLER: OnceLock<Sender<Request>> = OnceLock::new();

/// Starts the thread, unless it runs already.
pub(super) fn start() -> io::Result<()> {
    if KILLER.get().is_none() {
        let (sender, requests) = mpsc::channel();
        thread::Builder::new().name("redial-kill".to_owned()).spawn(move || work(&requests))?;
        KILLER.get_or_init(|| sender);
    }
    Ok(())
}

/// Requests that a tree is killed; returns at once.
pub(super) fn kill(target: Target) {
    if let Some(killer) = KILLER.get() {
        let _ = killer.send(Request::Kill(Box::new(target)));
    }
}

/// Waits until every process tree whose kill was requested so far is dead. Call it before this process ends, because the
/// thread that kills ends with it.
pub async fn wait_for_kills() {
    let (reply, done) = oneshot::channel();
    if KILLER.get().is_some_and(|killer| killer.send(Request::Wait(reply)).is_ok()) {
        let _ = done.await;
    }
}

struct Pending {
    target: Box<Target>,
    since: Instant,
}

fn work(requests: &Receiver<Request>) {
    let mut pending: Vec<Pending> = Vec::new();
    let mut waiting: Vec<oneshot::Sender<()>> = Vec::new();
    loop {
        let pause = if pending.is_empty() { Duration::MAX } else { PAUSE };
        let mut request = match receive(requests, pause) {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        while let Some(next) = request {
            match next {
                Request::Kill(target) => pending.push(Pending { target, since: Instant::now() }),
                Request::Wait(reply) => waiting.push(reply),
            }
            request = requests.try_recv().ok();
        }
        if !pending.is_empty() {
            kill_all(&mut pending);
        }
        if pending.is_empty() {
            for reply in waiting.drain(..) {
                let _ = reply.send(());
            }
        }
    }
}

fn receive(requests: &Receiver<Request>, pause: Duration) -> Result<Option<Request>, RecvTimeoutError> {
    if pause == Duration::MAX {
        return requests.recv().map(Some).map_err(|_| RecvTimeoutError::Disconnected);
    }
    requests.recv_timeout(pause).map(Some)
}

/// Scans all processes once and kills those of every target. A target is done once it has no processes left.
fn kill_all(pending: &mut Vec<Pending>) {
    let processes = process::all();
    let mut marked: HashMap<String, Vec<Pid>> = HashMap::new();
    for process in &processes {
        if let Some(marker) = process::variable(process.pid, MARKER) {
            marked.entry(marker).or_default().push(process.pid);
        }
    }
    pending.retain(|pending| {
        let marked = marked.get(&pending.target.marker).map(Vec::as_slice).unwrap_or_default();
        let members = members(&processes, pending.target.pid, marked);
        for pid in &members {
            let _ = kill_process(*pid, Signal::KILL);
        }
        if pending.since.elapsed() > GIVE_UP_AFTER {
            tracing::warn!(
                attempt = pending.target.marker,
                left = members.len(),
                "Gave up on processes that survived SIGKILL"
            );
            return false;
        }
        !members.is_empty()
    });
}

/// Returns the program, its group, the marked processes, and all their descendants.
fn members(processes: &[Process], program: Option<Pid>, marked: &[Pid]) -> HashSet<Pid> {
    let own = rustix::process::getpid();
    let group = program.map(Pid::as_raw_pid);
    let mut members: HashSet<Pid> = marked.iter().copied().collect();
    members.extend(processes.iter().filter(|process| Some(process.group) == group).map(|process| process.pid));
    loop {
        let before = members.len();
        let parents: HashSet<i32> = members.iter().map(|pid| pid.as_raw_pid()).collect();
        members.extend(processes.iter().filter(|process| parents.contains(&process.parent)).map(|process| process.pid));
        if members.len() == before {
            members.remove(&own);
            return members;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_group_parent_and_marker() {
        let process = |pid, parent, group| Process { pid: Pid::from_raw(pid).unwrap(), parent, group };
        let processes = [
            process(10, 1, 10),
            process(11, 10, 10),
            process(12, 11, 12),
            process(13, 12, 12),
            process(14, 1, 14),
            process(15, 14, 14),
            process(20, 1, 20),
        ];
        let found = |program: Option<i32>, marked: &[i32]| {
            let marked: Vec<Pid> = marked.iter().filter_map(|pid| Pid::from_raw(*pid)).collect();
            let mut found: Vec<i32> = members(&processes, program.and_then(Pid::from_raw), &marked)
                .iter()
                .map(|pid| pid.as_raw_pid())
                .collect();
            found.sort_unstable();
            found
        };
        assert_eq!(found(Some(10), &[]), [10, 11, 12, 13]);
        assert_eq!(found(Some(10), &[14]), [10, 11, 12, 13, 14, 15]);
        assert!(found(None, &[]).is_empty());
    }
}
