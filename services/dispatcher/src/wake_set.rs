//! Tasks that are to be advanced now, because their inbox got an item.

use std::collections::{HashSet, VecDeque};

use parking_lot::{Mutex, MutexGuard};
use redial_proto::TaskId;
use tokio::sync::Notify;

/// A set, so that several items for one task wake it once, in the order of waking; it has no limit, so that waking never
/// waits. What is lost with the process is found by the sweep over tasks.
#[derive(Default)]
pub(crate) struct WakeSet {
    tasks: Mutex<Tasks>,
    added: Notify,
}

#[derive(Default)]
struct Tasks {
    in_order: VecDeque<TaskId>,
    /// The same.
    known: HashSet<TaskId>,
}

impl WakeSet {
    /// Adds a task that there is something to advance for, on record by a committed transaction.
    pub(crate) fn wake(&self, task: TaskId) {
        let mut tasks = self.lock();
        if tasks.known.insert(task) {
            tasks.in_order.push_back(task);
        }
        drop(tasks);
        self.added.notify_one();
    }

    /// Waits until a task is added. Cancelling the wait loses nothing.
    pub(crate) async fn wait(&self) {
        self.added.notified().await;
    }

    /// Takes up to `most` tasks, the longest waiting ones first, and notifies the next waiter if some are left.
    pub(crate) fn take(&self, most: usize) -> Vec<TaskId> {
        let mut tasks = self.lock();
        let most = most.min(tasks.in_order.len());
        let taken: Vec<TaskId> = tasks.in_order.drain(..most).collect();
        for task in &taken {
            tasks.known.remove(task);
        }
        if !tasks.in_order.is_empty() {
            self.added.notify_one();
        }
        taken
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_task_is_taken_once_in_its_turn_and_the_rest_is_notified() {
        let set = WakeSet::default();
        let tasks: Vec<_> = (0..5).map(|_| TaskId::generate()).collect();
        for task in tasks.iter().chain(&tasks) {
            set.wake(*task);
        }
        set.wait().await;
        assert_eq!(set.take(3), tasks[..3]);
        set.wake(tasks[0]);
        set.wait().await;
        assert_eq!(
            set.take(3),
            [tasks[3], tasks[4], tasks[0]],
            "one that is woken again stands behind those that wait"
        );
        assert!(set.take(3).is_empty());
    }
}
