//! Killing a program with everything that it started.
//!
//! Killing a process group misses whoever called `setsid`. So descendants are recognised three ways: by the process
//! group, by their parents, and by a cookie in the environment that they inherited; and killing is repeated until
//! nobody is left. Only a process that both cleared its environment and lost its parents before the first look escapes.
//!
//! A thread of its own does this: reading `/proc` takes milliseconds, and futures are dropped on threads that have no
//! time for it.

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

/// The environment variable that names the attempt: `<call>.<attempt>`.
pub(super) const COOKIE: &str = "REDIAL_ATTEMPT";

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);
/// A process that SIGKILL does not end by then hangs in the kernel; we stop looking, with a warning.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is to be killed.
pub(super) struct Remains {
    /// Kept until all are dead, so that the group's id cannot become another's.
    #[expect(dead_code, reason = "only its drop matters")]
    pub(super) child: Option<Child>,
    /// The program's id and group; only together with the child.
    pub(super) pid: Option<Pid>,
    pub(super) cookie: String,
}

enum Order {
    Bury(Box<Remains>),
    Settled(oneshot::Sender<()>),
}

static REAPER: OnceLock<Sender<Order>> = OnceLock::new();

/// Starts the thread, if it does not run yet.
pub(super) fn start() -> io::Result<()> {
    if REAPER.get().is_none() {
        let (orders, inbox) = mpsc::channel();
        thread::Builder::new().name("redial-reap".to_owned()).spawn(move || work(&inbox))?;
        REAPER.get_or_init(|| orders);
    }
    Ok(())
}

/// Has a tree killed, soon.
pub(super) fn bury(remains: Remains) {
    if let Some(reaper) = REAPER.get() {
        let _ = reaper.send(Order::Bury(Box::new(remains)));
    }
}

/// Waits until every tree that was given up by now is dead. Call it before the process ends: the thread that kills ends
/// with it.
pub async fn settled() {
    let (reply, done) = oneshot::channel();
    if REAPER.get().is_some_and(|reaper| reaper.send(Order::Settled(reply)).is_ok()) {
        let _ = done.await;
    }
}

struct Grave {
    remains: Box<Remains>,
    since: Instant,
}

fn work(inbox: &Receiver<Order>) {
    let mut graves: Vec<Grave> = Vec::new();
    let mut waiting: Vec<oneshot::Sender<()>> = Vec::new();
    loop {
        let pause = if graves.is_empty() { Duration::MAX } else { PAUSE };
        let mut order = match receive(inbox, pause) {
            Ok(order) => order,
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        while let Some(next) = order {
            match next {
                Order::Bury(remains) => graves.push(Grave { remains, since: Instant::now() }),
                Order::Settled(reply) => waiting.push(reply),
            }
            order = inbox.try_recv().ok();
        }
        if !graves.is_empty() {
            kill_all(&mut graves);
        }
        if graves.is_empty() {
            for reply in waiting.drain(..) {
                let _ = reply.send(());
            }
        }
    }
}

fn receive(inbox: &Receiver<Order>, pause: Duration) -> Result<Option<Order>, RecvTimeoutError> {
    if pause == Duration::MAX {
        return inbox.recv().map(Some).map_err(|_| RecvTimeoutError::Disconnected);
    }
    inbox.recv_timeout(pause).map(Some)
}

/// One look at all processes, for all graves. A grave is closed once nobody belongs to it.
fn kill_all(graves: &mut Vec<Grave>) {
    let processes = process::all();
    let mut cookies: HashMap<String, Vec<Pid>> = HashMap::new();
    for process in &processes {
        if let Some(cookie) = process::variable(process.pid, COOKIE) {
            cookies.entry(cookie).or_default().push(process.pid);
        }
    }
    graves.retain(|grave| {
        let marked = cookies.get(&grave.remains.cookie).map(Vec::as_slice).unwrap_or_default();
        let members = members(&processes, grave.remains.pid, marked);
        for pid in &members {
            let _ = kill_process(*pid, Signal::KILL);
        }
        if grave.since.elapsed() > PATIENCE {
            tracing::warn!(attempt = grave.remains.cookie, left = members.len(), "processes do not die");
            return false;
        }
        !members.is_empty()
    });
}

/// The program, its group, the marked ones, and all their descendants.
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
    fn members_are_found_by_group_parent_and_mark() {
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
