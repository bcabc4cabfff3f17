//! Adaptive batching: takes what is there and never waits for more.
//!
//! While a lane is busy with a batch, what comes in piles up and becomes the next batch. An idle lane takes a single
//! item at once. So batches are as large as the load makes them, and a lone call pays no delay.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc};
use tokio_util::task::TaskTracker;

/// How many batches are worked on at once, and how large they may get.
#[derive(Clone, Copy)]
pub(crate) struct Lanes {
    pub(crate) count: usize,
    pub(crate) batch: usize,
}

/// Starts the lanes; they end when every sender is gone and all is worked off. The channel holds eight full batches:
/// beyond that, senders wait.
pub(crate) fn start<T, W>(lanes: Lanes, tasks: &TaskTracker, work: &W) -> mpsc::Sender<T>
where
    T: Send + 'static,
    W: AsyncWork<T>,
{
    let (sender, receiver) = mpsc::channel(lanes.batch * 8);
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..lanes.count {
        tasks.spawn(lane(receiver.clone(), lanes.batch, work.clone()));
    }
    sender
}

/// The work on one batch.
pub(crate) trait AsyncWork<T>: Clone + Send + 'static {
    /// Works on a batch of at least one.
    fn work(&self, batch: Vec<T>) -> impl Future<Output = ()> + Send;
}

async fn lane<T: Send + 'static, W: AsyncWork<T>>(receiver: Arc<Mutex<mpsc::Receiver<T>>>, most: usize, work: W) {
    loop {
        let mut batch = Vec::new();
        if receiver.lock().await.recv_many(&mut batch, most).await == 0 {
            return;
        }
        work.work(batch).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Semaphore;

    #[derive(Clone)]
    struct Gated {
        gate: Arc<Semaphore>,
        sizes: mpsc::UnboundedSender<usize>,
    }

    impl AsyncWork<u32> for Gated {
        async fn work(&self, batch: Vec<u32>) {
            self.sizes.send(batch.len()).unwrap();
            self.gate.acquire().await.unwrap().forget();
        }
    }

    #[tokio::test]
    async fn a_lone_item_goes_at_once_and_a_pile_becomes_one_batch() {
        let (sizes, mut seen) = mpsc::unbounded_channel();
        let gate = Arc::new(Semaphore::new(0));
        let tasks = TaskTracker::new();
        let sender = start(Lanes { count: 1, batch: 100 }, &tasks, &Gated { gate: gate.clone(), sizes });
        sender.send(0).await.unwrap();
        assert_eq!(seen.recv().await, Some(1));
        for n in 1..=150 {
            sender.send(n).await.unwrap();
        }
        gate.add_permits(3);
        assert_eq!((seen.recv().await, seen.recv().await), (Some(100), Some(50)));
        drop(sender);
        tasks.close();
        tasks.wait().await;
    }
}
