//! Requests wait here until they have their turn: those of each sender in theirs, so that the flood of a tenant or of a worker
//! identity delays nobody else, and none takes more memory than its own.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// So many requests of one sender wait at most.
const MOST: usize = 4_096;
/// So many bytes of one sender wait at most, and one request more.
const MOST_BYTES: usize = 16 << 20;
/// So many bytes wait at most of all senders together.
const MOST_OF_ALL: usize = 128 << 20;
/// So many bytes are taken at once, and one item more: a batch of large requests must not hold up those that come after it.
const BATCH_BYTES: usize = 1 << 20;

/// What waits, by sender.
pub(crate) struct InTurn<T> {
    inner: Mutex<Inner<T>>,
    changed: Notify,
}

struct Inner<T> {
    senders: HashMap<String, Waiting<T>>,
    /// The senders, in the order of their turns.
    turns: VecDeque<String>,
    bytes: usize,
    closed: bool,
}

struct Waiting<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
}

impl<T> Default for InTurn<T> {
    fn default() -> Self {
        let inner = Inner { senders: HashMap::new(), turns: VecDeque::new(), bytes: 0, closed: false };
        Self { inner: Mutex::new(inner), changed: Notify::new() }
    }
}

impl<T> InTurn<T> {
    /// Adds an item of so many bytes. Gives it back if too much of its sender, or of all, waits, or if it is closed.
    pub(crate) fn add(&self, sender: &str, item: T, bytes: usize) -> Result<(), T> {
        let mut inner = self.lock();
        let Inner { senders, turns, bytes: of_all, closed } = &mut *inner;
        if *closed || *of_all >= MOST_OF_ALL {
            return Err(item);
        }
        let waiting = match senders.entry(sender.to_owned()) {
            Entry::Occupied(waiting) => waiting.into_mut(),
            Entry::Vacant(new) => {
                let waiting = new.insert(Waiting { items: VecDeque::new(), bytes: 0 });
                turns.push_back(sender.to_owned());
                waiting
            }
        };
        if waiting.items.len() >= MOST || waiting.bytes >= MOST_BYTES {
            return Err(item);
        }
        waiting.items.push_back((item, bytes));
        waiting.bytes += bytes;
        *of_all += bytes;
        drop(inner);
        self.changed.notify_one();
        Ok(())
    }

    /// The next items, one of each sender in turn, at most so many; waits for the first. `None` once it is closed and empty.
    /// Can be cancelled without loss.
    pub(crate) async fn take(&self, most: usize) -> Option<Vec<T>> {
        loop {
            let changed = self.changed.notified();
            match self.take_now(most) {
                (items, _) if !items.is_empty() => return Some(items),
                (_, closed) if closed => return None,
                _ => changed.await,
            }
        }
    }

    /// What is there, and whether it is closed.
    fn take_now(&self, most: usize) -> (Vec<T>, bool) {
        let mut inner = self.lock();
        let items = inner.take(most);
        if inner.closed || !inner.turns.is_empty() {
            // For another one who waits.
            self.changed.notify_one();
        }
        (items, inner.closed)
    }

    /// Nothing is added any more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Inner<T> {
    fn take(&mut self, most: usize) -> Vec<T> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while taken.len() < most && bytes < BATCH_BYTES {
            let Some(sender) = self.turns.pop_front() else { break };
            let Entry::Occupied(mut waiting) = self.senders.entry(sender) else { continue };
            if let Some((item, size)) = waiting.get_mut().items.pop_front() {
                taken.push(item);
                waiting.get_mut().bytes -= size;
                self.bytes -= size;
                bytes += size;
            }
            if waiting.get().items.is_empty() {
                waiting.remove();
            } else {
                self.turns.push_back(waiting.key().clone());
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn each_sender_has_its_turn() {
        let waiting = InTurn::default();
        for n in 0..10 {
            waiting.add("flood", n, 1).unwrap();
        }
        waiting.add("one", 100, 1).unwrap();
        waiting.add("other", 200, 1).unwrap();
        assert_eq!(waiting.take(4).await, Some(vec![0, 100, 200, 1]));
        waiting.add("one", 101, 1).unwrap();
        assert_eq!(waiting.take(3).await, Some(vec![2, 101, 3]));
        waiting.close();
        assert_eq!(waiting.add("one", 102, 1), Err(102));
        assert_eq!(waiting.take(100).await, Some((4..10).collect()));
        assert_eq!((waiting.take(1).await, waiting.take(1).await), (None, None));
    }

    #[tokio::test]
    async fn what_waits_is_bounded_by_sender() {
        let waiting = InTurn::default();
        let added = (0..2 * MOST).take_while(|n| waiting.add("flood", *n, 1).is_ok()).count();
        assert_eq!((added, waiting.add("one", 0, 1)), (MOST, Ok(())));
        let waiting = InTurn::default();
        let added = (0..2 * MOST).take_while(|n| waiting.add("flood", *n, 1 << 20).is_ok()).count();
        assert_eq!((added, waiting.add("one", 0, 1)), (16, Ok(())));
        assert_eq!(waiting.take(100).await.unwrap().len(), 1, "a batch is not larger because its items are");
        assert_eq!(waiting.take(100).await.unwrap().len(), 2);
        let most = (0..2 * MOST).take_while(|n| waiting.add(&format!("sender {n}"), *n, 8 << 20).is_ok()).count();
        assert_eq!(most, 15, "all together are bounded, too");
    }

    #[tokio::test]
    async fn everyone_who_waits_gets_something_or_the_end() {
        let waiting = Arc::new(InTurn::default());
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
        waiting.close();
        let mut taken = 0;
        for taker in takers {
            taken += taker.await.unwrap();
        }
        assert_eq!(taken, 1_000);
    }
}
