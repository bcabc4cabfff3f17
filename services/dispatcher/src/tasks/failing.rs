//! Tasks that could not be advanced by themselves: each waits on its own before it is tried again, longer each time.

use std::{collections::HashMap, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use redial_proto::TaskId;
use tokio::time::Instant;

/// The pause after the first failure.
const SHORTEST: Duration = Duration::from_secs(1);
/// The pause after many failures.
const LONGEST: Duration = Duration::from_mins(1);

/// The tasks that this dispatcher failed to advance. They are advanced alone and after a pause, so that they hold up
/// nobody. What is lost with the process is found again by failing again.
#[derive(Debug, Default)]
pub(super) struct FailingTasks {
    tasks: Mutex<HashMap<TaskId, Pause>>,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    length: Duration,
    until: Instant,
}

impl FailingTasks {
    /// Takes note that a task failed when it was advanced alone; returns how long it is left alone now.
    pub(super) fn failed(&self, task: TaskId, now: Instant) -> Duration {
        let mut tasks = self.lock();
        let length = tasks.get(&task).map_or(SHORTEST, |pause| (pause.length * 2).min(LONGEST));
        tasks.insert(task, Pause { length, until: now + length });
        length
    }

    /// Takes note that a task was advanced, or that there was nothing to advance.
    pub(super) fn succeeded(&self, task: TaskId) {
        self.lock().remove(&task);
    }

    pub(super) fn all(&self) -> Vec<TaskId> {
        self.lock().keys().copied().collect()
    }

    /// Returns the failing tasks that may be tried again, the longest waiting ones first.
    pub(super) fn due(&self, now: Instant) -> Vec<TaskId> {
        let tasks = self.lock();
        let mut due: Vec<(Instant, TaskId)> =
            tasks.iter().filter(|(_, pause)| pause.until <= now).map(|(task, pause)| (pause.until, *task)).collect();
        due.sort_unstable();
        due.into_iter().map(|(_, task)| task).collect()
    }

    /// Returns those of these tasks that do not fail.
    pub(super) fn others(&self, tasks: Vec<TaskId>) -> Vec<TaskId> {
        let failing = self.lock();
        tasks.into_iter().filter(|task| !failing.contains_key(task)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Pause>> {
        self.tasks.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_a_minute_and_ends_with_a_success() {
        let (failing, now) = (FailingTasks::default(), Instant::now());
        let (task, other) = (TaskId::generate(), TaskId::generate());
        let pauses: Vec<u64> = (0..8).map(|_| failing.failed(task, now).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(failing.failed(other, now), SHORTEST, "each has its own");
        assert_eq!(failing.due(now), []);
        assert_eq!(failing.due(now + SHORTEST), [other]);
        assert_eq!(failing.due(now + LONGEST), [other, task]);
        failing.succeeded(task);
        assert_eq!((failing.all(), failing.others(vec![task, other])), (vec![other], vec![task]));
        assert_eq!(failing.failed(task, now), SHORTEST);
    }
}
