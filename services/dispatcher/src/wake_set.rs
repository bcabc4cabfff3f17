//! Tasks that are to be advanced now, because their inbox got an item.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use redial_proto::TaskId;
use tokio::sync::Notify;

/// A set, so that several items for one task wake it once; it has no limit, so that waking never waits. What is lost
/// with the process is found by the sweep over tasks.
#[derive(Default)]
pub(crate) struct WakeSet {
    tasks: Mutex<BTreeSet<TaskId>>,
    added: Notify,
}

impl WakeSet {
    /// Adds a task whose inbox got an item in a committed transaction.
    pub(crate) fn wake(&self, task: TaskId) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).insert(task);
        self.added.notify_one();
    }

    /// Waits until a task is added. Cancelling the wait loses nothing.
    pub(crate) async fn wait(&self) {
        self.added.notified().await;
    }

    /// Takes up to `most` tasks, and notifies the next waiter if some are left.
    pub(crate) fn take(&self, most: usize) -> Vec<TaskId> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = tasks.iter().nth(most).copied().map(|first| tasks.split_off(&first)).unwrap_or_default();
        let taken = std::mem::replace(&mut *tasks, rest);
        if !tasks.is_empty() {
            self.added.notify_one();
        }
        taken.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_task_is_taken_once_and_the_rest_is_notified() {
        let set = WakeSet::default();
        let tasks: Vec<_> = (0..5).map(|_| TaskId::generate()).collect();
        for task in tasks.iter().chain(&tasks) {
            set.wake(*task);
        }
        set.wait().await;
        assert_eq!(set.take(3), tasks[..3]);
        set.wait().await;
        assert_eq!(set.take(3), tasks[3..]);
        assert!(set.take(3).is_empty());
    }
}
