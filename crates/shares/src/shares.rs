//! Permits that are shared by those who ask for them.

use std::{collections::HashMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

use crate::turns::{Turn, Turns};

/// Permits. Nobody gets more while fewer stay free than it would have then: one alone has half of them at most, two have a third
/// each, and whoever has none finds one. Those who wait are served in turn, and what one of them asked for first comes first.
///
/// Cheap to clone; all clones share the permits.
#[derive(Clone, Debug)]
pub struct Shares(Arc<All>);

#[derive(Debug)]
struct All {
    most: usize,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    free: usize,
    held: HashMap<String, usize>,
    waiting: Turns<Waiter>,
    /// The number of the last one who waited.
    next: u64,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    count: usize,
    sender: oneshot::Sender<Share>,
}

/// Permits of one who asked for them. They are free for others once it is dropped.
#[derive(Debug)]
pub struct Share {
    shares: Shares,
    of: String,
    count: usize,
}

/// One who waits. Dropped, it waits no more.
struct Waiting<'a> {
    shares: &'a Shares,
    of: &'a str,
    number: u64,
    served: bool,
}

impl Shares {
    /// Makes so many permits for all together.
    pub fn new(permits: usize) -> Self {
        Self::with(permits, permits)
    }

    /// Makes so many permits for each who asks, however many those are.
    pub fn of_each(permits: usize) -> Self {
        Self::with(usize::MAX, permits)
    }

    fn with(free: usize, most: usize) -> Self {
        let state = State { free, held: HashMap::new(), waiting: Turns::default(), next: 0 };
        Self(Arc::new(All { most, state: Mutex::new(state), freed: Notify::new() }))
    }

    /// Takes permits if there are as many for this one now; does not look at those who wait.
    pub fn try_take(&self, of: &str, count: usize) -> Option<Share> {
        self.state().try_take(self, of, count)
    }

    /// Waits for so many permits, or for all that there are. Can be cancelled without loss.
    pub async fn take(&self, of: &str, count: usize) -> Share {
        let count = count.min(self.0.most);
        if let Some(share) = self.state().take_first(self, of, count) {
            return share;
        }
        let (sender, served) = oneshot::channel();
        let number = self.state().wait(of, count, sender);
        let mut waiting = Waiting { shares: self, of, number, served: false };
        self.serve();
        match served.await {
            Ok(share) => {
                waiting.served = true;
                share
            }
            // Who waits is served or stays in the queue.
            Err(_) => std::future::pending().await,
        }
    }

    /// Counts the permits that this one holds.
    pub fn held(&self, of: &str) -> usize {
        self.state().held.get(of).copied().unwrap_or(0)
    }

    /// Counts the requests of this one that wait.
    pub fn waiting(&self, of: &str) -> usize {
        self.state().waiting.count(of)
    }

    /// Waits until permits were given back. Can be cancelled without loss.
    pub(crate) async fn freed(&self) {
        self.0.freed.notified().await;
    }

    /// Gives waiting requests the permits that are theirs.
    fn serve(&self) {
        while let Some((waiter, share)) = self.next() {
            // Whoever went away in this moment gives it back.
            let _ = waiter.sender.send(share);
        }
    }

    fn next(&self) -> Option<(Waiter, Share)> {
        let mut state = self.state();
        let mut waiting = std::mem::take(&mut state.waiting);
        let next = waiting.next(|of, waiter| state.turn(of, waiter.count, self.0.most));
        state.waiting = waiting;
        let (of, waiter) = next?;
        let share = state.take(self, &of, waiter.count);
        Some((waiter, share))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

impl State {
    fn turn(&self, of: &str, count: usize, most: usize) -> Turn {
        let held = self.held.get(of).copied().unwrap_or(0);
        let left = self.free.checked_sub(count);
        match left {
            Some(left) if held + count <= most && (held == 0 || held + count <= left) => Turn::Takes,
            None if held == 0 => Turn::Waits,
            _ => Turn::Passes,
        }
    }

    fn try_take(&mut self, shares: &Shares, of: &str, count: usize) -> Option<Share> {
        (self.turn(of, count, shares.0.most) == Turn::Takes).then(|| self.take(shares, of, count))
    }

    /// Takes permits as [`Shares::try_take`] does if nobody waits.
    fn take_first(&mut self, shares: &Shares, of: &str, count: usize) -> Option<Share> {
        if self.waiting.is_empty() { self.try_take(shares, of, count) } else { None }
    }

    /// Adds a waiting request; returns its number.
    fn wait(&mut self, of: &str, count: usize, sender: oneshot::Sender<Share>) -> u64 {
        self.next += 1;
        self.waiting.push(of, Waiter { number: self.next, count, sender });
        self.next
    }

    fn take(&mut self, shares: &Shares, of: &str, count: usize) -> Share {
        self.free -= count;
        *self.held.entry(of.to_owned()).or_default() += count;
        Share { shares: shares.clone(), of: of.to_owned(), count }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.shares.state();
        state.free += self.count;
        if let Some(held) = state.held.get_mut(&self.of) {
            *held -= self.count;
            if *held == 0 {
                state.held.remove(&self.of);
            }
        }
        drop(state);
        self.shares.0.freed.notify_one();
        self.shares.serve();
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.served {
            self.shares.state().waiting.remove(self.of, |waiter| waiter.number == self.number);
            // Others may have waited behind it.
            self.shares.serve();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn taken(shares: &Shares, of: &str) -> Vec<Share> {
        std::iter::from_fn(|| shares.try_take(of, 1)).collect()
    }

    #[test]
    fn nobody_has_more_than_half_and_whoever_comes_finds_a_part() {
        let shares = Shares::new(8);
        let mut all = taken(&shares, "flood");
        assert_eq!(all.len(), 4);
        all.extend(taken(&shares, "one"));
        all.extend(taken(&shares, "other"));
        assert_eq!(["flood", "one", "other"].map(|of| shares.held(of)), [4, 2, 1]);
        all.extend(taken(&shares, "last"));
        assert_eq!(shares.held("last"), 1);
        assert!(taken(&shares, "nobody").is_empty());
        drop(all);
        assert_eq!((shares.held("flood"), shares.state().free), (0, 8));
        for (permits, most) in [(1, 1), (2, 1), (3, 1), (4, 2)] {
            assert_eq!(taken(&Shares::new(permits), "flood").len(), most, "of {permits}");
        }
        let each = Shares::of_each(3);
        assert_eq!([taken(&each, "one").len(), taken(&each, "other").len()], [3, 3]);
    }

    #[tokio::test]
    async fn who_waits_has_its_turn_and_does_not_wait_for_the_others_of_a_flood() {
        let shares = Shares::new(3);
        let held = [shares.take("flood", 1).await, shares.take("one", 1).await, shares.take("other", 1).await];
        let (sender, mut served) = tokio::sync::mpsc::unbounded_channel();
        for of in ["flood"; 100].into_iter().chain(["one", "other", "one"]) {
            let (shares, sender) = (shares.clone(), sender.clone());
            tokio::spawn(async move { sender.send((of, shares.take(of, 1).await)) });
        }
        while shares.waiting("one") < 2 {
            tokio::task::yield_now().await;
        }
        drop(held);
        let mut order = Vec::new();
        for _ in 0..6 {
            let (of, share) = served.recv().await.unwrap();
            order.push(of);
            drop(share);
        }
        assert_eq!(order, ["flood", "one", "other", "flood", "one", "flood"]);
    }

    #[tokio::test]
    async fn a_large_share_is_not_overtaken_and_who_goes_away_holds_nobody_up() {
        let shares = Shares::new(10);
        let held = shares.take("one", 4).await;
        let mut large = Box::pin(shares.take("large", 100));
        let mut small = pin!(shares.take("small", 1));
        tokio::select! { biased; _ = &mut large => panic!("4 are held"), _ = &mut small => panic!("it is its turn"), () = async {} => {} }
        assert_eq!((shares.waiting("large"), shares.waiting("small")), (1, 1));
        drop(large);
        let small = small.await;
        assert_eq!((shares.waiting("large"), shares.held("small")), (0, 1));
        drop((held, small));
        assert_eq!(shares.take("large", 100).await.count, 10);
    }
}
