//! Tasks that somebody has to look at now, because something came in for them.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use redial_proto::TaskId;
use tokio::sync::Notify;

/// A set, so that what comes in for one task while others are looked at is looked at once; it is never full, so that
/// nobody who pokes ever waits. What is lost with the process is found by the sweep.
#[derive(Default)]
pub(crate) struct Pokes {
    tasks: Mutex<BTreeSet<TaskId>>,
    bell: Notify,
}

impl Pokes {
    /// Something came in for this task, and is committed.
    pub(crate) fn poke(&self, task: TaskId) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).insert(task);
        self.bell.notify_one();
    }

    /// Waits for a task. Can be cancelled without loss.
    pub(crate) async fn wait(&self) {
        self.bell.notified().await;
    }

    /// Takes what is there, at most so many; rings again if that was not all.
    pub(crate) fn take(&self, most: usize) -> Vec<TaskId> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = tasks.iter().nth(most).copied().map(|first| tasks.split_off(&first)).unwrap_or_default();
        let taken = std::mem::replace(&mut *tasks, rest);
        if !tasks.is_empty() {
            self.bell.notify_one();
        }
        taken.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_task_is_taken_once_and_the_bell_rings_for_the_rest() {
        let pokes = Pokes::default();
        let tasks: Vec<_> = (0..5).map(|_| TaskId::generate()).collect();
        for task in tasks.iter().chain(&tasks) {
            pokes.poke(*task);
        }
        pokes.wait().await;
        assert_eq!(pokes.take(3), tasks[..3]);
        pokes.wait().await;
        assert_eq!(pokes.take(3), tasks[3..]);
        assert!(pokes.take(3).is_empty());
    }
}
