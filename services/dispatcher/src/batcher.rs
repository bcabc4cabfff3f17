//! Adaptive batching: takes the items that are there and never waits for more.
//!
//! While a batcher's workers are busy, new items collect and become the next batch. An idle worker takes a single item
//! at once. So batches are as large as the load makes them, and a lone call pays no delay.

use std::sync::Arc;

use redial_loops::Loops;
use redial_shares::FairQueue;
use tokio::sync::{Mutex, mpsc};

#[derive(Clone, Copy)]
pub(crate) struct Batching {
    /// Appears in the log if a worker panics.
    pub(crate) name: &'static str,
    /// Batches worked on at once.
    pub(crate) workers: usize,
    /// The largest batch.
    pub(crate) batch: usize,
}

/// Starts a batcher; it ends once every sender is gone and every item done. Senders wait beyond eight full batches.
pub(crate) fn start<T, W>(batching: Batching, loops: &Loops, work: &W) -> mpsc::Sender<T>
where
    T: Send + 'static,
    W: BatchWork<T>,
{
    let (sender, receiver) = mpsc::channel(batching.batch * 8);
    spawn(batching, loops, work, &Arc::new(Mutex::new(receiver)));
    sender
}

/// Starts a batcher of what comes from a source. It ends when that does.
pub(crate) fn spawn<T, W, S>(batching: Batching, loops: &Loops, work: &W, source: &Arc<S>)
where
    T: Send + 'static,
    W: BatchWork<T>,
    S: Source<T>,
{
    for _ in 0..batching.workers {
        loops.spawn(batching.name, run(source.clone(), batching.batch, work.clone()));
    }
}

pub(crate) trait BatchWork<T>: Clone + Send + 'static {
    /// Works on a batch of at least one.
    fn work(&self, batch: Vec<T>) -> impl Future<Output = ()> + Send;
}

pub(crate) trait Source<T>: Send + Sync + 'static {
    /// Takes up to `most` items; waits for the first; `None` once closed.
    fn next(&self, most: usize) -> impl Future<Output = Option<Vec<T>>> + Send;
}

impl<T: Send + 'static> Source<T> for Mutex<mpsc::Receiver<T>> {
    async fn next(&self, most: usize) -> Option<Vec<T>> {
        let mut batch = Vec::new();
        (self.lock().await.recv_many(&mut batch, most).await > 0).then_some(batch)
    }
}

impl<T: Send + 'static> Source<T> for FairQueue<T> {
    async fn next(&self, most: usize) -> Option<Vec<T>> {
        self.take(most).await
    }
}

async fn run<T: Send + 'static, W: BatchWork<T>>(source: Arc<impl Source<T>>, most: usize, work: W) {
    while let Some(batch) = source.next(most).await {
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

    impl BatchWork<u32> for Gated {
        async fn work(&self, batch: Vec<u32>) {
            self.sizes.send(batch.len()).unwrap();
            self.gate.acquire().await.unwrap().forget();
        }
    }

    #[tokio::test]
    async fn a_lone_item_is_taken_at_once_and_collected_items_become_one_batch() {
        let (sizes, mut seen) = mpsc::unbounded_channel();
        let gate = Arc::new(Semaphore::new(0));
        let loops = Loops::default();
        let sender =
            start(Batching { name: "gated", workers: 1, batch: 100 }, &loops, &Gated { gate: gate.clone(), sizes });
        sender.send(0).await.unwrap();
        assert_eq!(seen.recv().await, Some(1));
        for n in 1..=150 {
            sender.send(n).await.unwrap();
        }
        gate.add_permits(3);
        assert_eq!((seen.recv().await, seen.recv().await), (Some(100), Some(50)));
        drop(sender);
        loops.close();
        loops.wait().await;
    }
}
