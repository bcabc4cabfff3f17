//! Requests wait here until they have their turn: those of each sender in theirs, so that the flood of a tenant or of a worker
//! identity delays nobody else, and none takes more memory than its own.

use std::{collections::HashMap, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Notify, time::timeout};

use crate::{
    shares::{Share, Shares},
    turns::{Turn, Turns},
};

/// Requests of one sender that may wait.
const MAX_REQUESTS: usize = 4_096;
/// Bytes of one sender that may wait; the last request may exceed them.
const MAX_BYTES: usize = 16 << 20;
/// Bytes of all senders together that may wait; each may have one request beyond that.
const MAX_BYTES_OF_ALL: usize = 128 << 20;
/// What an item takes besides its bytes, about.
const ITEM_BYTES: usize = 512;
/// Bytes that are taken at once, and one item more: a batch of large requests must not hold up those that come after
/// it.
const BATCH_BYTES: usize = 1 << 20;

/// A queue that serves its senders in turn.
#[derive(Debug)]
pub struct FairQueue<T> {
    inner: Mutex<Inner<T>>,
    changed: Notify,
    /// It is closed and empty.
    ended: Notify,
}

#[derive(Debug)]
struct Inner<T> {
    /// Each item with its bytes.
    waiting: Turns<(T, usize)>,
    bytes: HashMap<String, usize>,
    bytes_of_all: usize,
    closed: bool,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        let inner = Inner { waiting: Turns::default(), bytes: HashMap::new(), bytes_of_all: 0, closed: false };
        Self { inner: Mutex::new(inner), changed: Notify::new(), ended: Notify::new() }
    }
}

impl<T> FairQueue<T> {
    /// Adds an item of so many bytes. Gives it back if too much of its sender, or of all, waits, or if the queue is
    /// closed.
    pub fn add(&self, sender: &str, item: T, bytes: usize) -> Result<(), T> {
        let bytes = bytes + ITEM_BYTES;
        let mut inner = self.lock();
        let (count, of_sender) = (inner.waiting.count(sender), inner.bytes.get(sender).copied().unwrap_or(0));
        let is_full = count >= MAX_REQUESTS || of_sender >= MAX_BYTES;
        if inner.closed || is_full || (inner.bytes_of_all >= MAX_BYTES_OF_ALL && count > 0) {
            return Err(item);
        }
        inner.waiting.push(sender, (item, bytes));
        inner.bytes.insert(sender.to_owned(), of_sender + bytes);
        inner.bytes_of_all += bytes;
        drop(inner);
        self.changed.notify_one();
        Ok(())
    }

    /// Takes up to `most` items, one of each sender in turn; waits for the first; `None` once closed and empty. Can be
    /// cancelled without loss.
    pub async fn take(&self, most: usize) -> Option<Vec<T>> {
        loop {
            let changed = self.changed.notified();
            match self.take_now(most) {
                (items, _) if !items.is_empty() => return Some(items),
                (_, closed) if closed => return None,
                _ => changed.await,
            }
        }
    }

    /// Takes the next item of a sender that has a share, with that share; waits for both; `None` once closed and empty.
    /// Can be cancelled without loss.
    pub async fn take_with(&self, shares: &Shares) -> Option<(T, Share)> {
        loop {
            let changed = self.changed.notified();
            {
                let (mut inner, mut share) = (self.lock(), None);
                let next = inner.next(|sender| {
                    share = shares.try_take(sender, 1);
                    if share.is_some() { Turn::Takes } else { Turn::Passes }
                });
                if next.is_some() || (inner.closed && inner.waiting.is_empty()) {
                    self.tell(&inner);
                    return next.map(|(item, _)| item).zip(share);
                }
            }
            tokio::select! {
                () = changed => {}
                () = shares.freed() => {}
            }
        }
    }

    /// Takes up to `most` items without waiting; returns whether the queue is closed, too.
    fn take_now(&self, most: usize) -> (Vec<T>, bool) {
        let mut inner = self.lock();
        let items = inner.take(most, BATCH_BYTES);
        self.tell(&inner);
        (items, inner.closed)
    }

    /// Wakes another one who waits, if there is something for it.
    fn tell(&self, inner: &Inner<T>) {
        if inner.closed || !inner.waiting.is_empty() {
            self.changed.notify_one();
        }
        if inner.closed && inner.waiting.is_empty() {
            self.ended.notify_one();
        }
    }

    /// Closes the queue: nothing is added any more. Returns what nobody takes within the time.
    pub async fn close(&self, within: Duration) -> Vec<T> {
        let is_empty = {
            let mut inner = self.lock();
            inner.closed = true;
            inner.waiting.is_empty()
        };
        self.changed.notify_one();
        if !is_empty && timeout(within, self.ended.notified()).await.is_err() {
            return self.lock().take(usize::MAX, usize::MAX);
        }
        Vec::new()
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock()
    }
}

impl<T> Inner<T> {
    fn take(&mut self, most: usize, most_bytes: usize) -> Vec<T> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while taken.len() < most && bytes < most_bytes {
            let Some((item, size)) = self.next(|_| Turn::Takes) else { break };
            taken.push(item);
            bytes += size;
        }
        taken
    }

    fn next(&mut self, mut turn: impl FnMut(&str) -> Turn) -> Option<(T, usize)> {
        let (sender, (item, size)) = self.waiting.next(|sender, _| turn(sender))?;
        self.bytes_of_all -= size;
        if self.waiting.count(&sender) == 0 {
            self.bytes.remove(&sender);
        } else if let Some(bytes) = self.bytes.get_mut(&sender) {
            *bytes -= size;
        }
        Some((item, size))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn each_sender_has_its_turn() {
        let waiting = FairQueue::default();
        for n in 0..10 {
            waiting.add("flood", n, 1).unwrap();
        }
        waiting.add("one", 100, 1).unwrap();
        waiting.add("other", 200, 1).unwrap();
        assert_eq!(waiting.take(4).await, Some(vec![0, 100, 200, 1]));
        waiting.add("one", 101, 1).unwrap();
        assert_eq!(waiting.take(3).await, Some(vec![2, 101, 3]));
        let closing = async {
            assert_eq!(waiting.add("one", 102, 1), Err(102));
            assert_eq!(waiting.take(4).await, Some((4..8).collect()));
        };
        let (left, ()) = tokio::join!(waiting.close(Duration::from_millis(1)), closing);
        assert_eq!(left, [8, 9], "nobody took them");
        assert_eq!((waiting.take(1).await, waiting.take(1).await), (None, None));
    }

    #[tokio::test]
    async fn a_sender_that_has_its_share_is_passed_until_it_gives_some_back() {
        let (waiting, shares) = (FairQueue::default(), Shares::new(6));
        for n in 0..10 {
            waiting.add("flood", n, 1).unwrap();
        }
        waiting.add("one", 100, 1).unwrap();
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.push(waiting.take_with(&shares).await.unwrap());
        }
        assert_eq!(taken.iter().map(|(item, _)| *item).collect::<Vec<_>>(), [0, 100, 1]);
        let mut next = Box::pin(waiting.take_with(&shares));
        tokio::select! { biased; _ = &mut next => panic!("the flood has its share"), () = async {} => {} }
        taken.remove(0);
        assert_eq!(next.await.unwrap().0, 2);
        assert_eq!(waiting.close(Duration::ZERO).await, (3..10).collect::<Vec<_>>());
        assert!(waiting.take_with(&shares).await.is_none());
    }

    #[tokio::test]
    async fn what_waits_is_bounded_by_sender() {
        let waiting = FairQueue::default();
        let added = (0..2 * MAX_REQUESTS).take_while(|n| waiting.add("flood", *n, 1).is_ok()).count();
        assert_eq!((added, waiting.add("one", 0, 1)), (MAX_REQUESTS, Ok(())));
        let waiting = FairQueue::default();
        let of_mb = (1 << 20) - ITEM_BYTES;
        let added = (0..2 * MAX_REQUESTS).take_while(|n| waiting.add("flood", *n, of_mb).is_ok()).count();
        assert_eq!((added, waiting.add("one", 0, 1)), (16, Ok(())));
        assert_eq!(waiting.take(100).await.unwrap().len(), 1, "a batch is not larger because its items are");
        assert_eq!(waiting.take(100).await.unwrap().len(), 2);
        for sender in 0..20 {
            waiting.add(&format!("sender {sender}"), 0, 8 << 20).unwrap();
        }
        assert_eq!(waiting.add("sender 0", 1, 1), Err(1), "all together are bounded, too");
        assert_eq!(waiting.add("one more", 1, 1), Ok(()), "nobody keeps another one out");
    }

    #[tokio::test]
    async fn everyone_who_waits_gets_something_or_the_end() {
        let waiting = Arc::new(FairQueue::default());
        let takers: Vec<_> = (0..3)
            .map(|_| {
                let waiting = waiting.clone();
                tokio::spawn(async move {
                    let mut taken = 0;
                    while let Some(items) = waiting.take(2).await {
                        taken += items.len();
                    }
                    taken
                })
            })
            .collect();
        for n in 0..1_000 {
            waiting.add(&(n % 7).to_string(), n, 1).unwrap();
            tokio::task::yield_now().await;
        }
        assert!(waiting.close(Duration::MAX).await.is_empty());
        let mut taken = 0;
        for taker in takers {
            taken += taker.await.unwrap();
        }
        assert_eq!(taken, 1_000);
    }
}
