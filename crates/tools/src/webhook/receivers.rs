//! How many deliveries a receiver may owe an answer: one that does not answer must not take the slots of all others.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use uuid::Uuid;

/// How long a delivery waits for its turn. A receiver that answers gives many turns meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);
/// Receivers that are remembered; beyond, those that are idle and well are forgotten.
const REMEMBERED: usize = 1_000;

type Receiver = (String, Uuid);

/// The receivers that this worker delivers to.
#[derive(Debug)]
pub(super) struct Receivers {
    /// Deliveries to one receiver at the same time.
    each: usize,
    known: Mutex<HashMap<Receiver, Arc<State>>>,
}

#[derive(Debug)]
struct State {
    permits: Arc<Semaphore>,
    /// The last delivery got no answer: only one at a time finds out when that changes.
    is_silent: AtomicBool,
    is_probed: AtomicBool,
}

/// The right to ask a receiver. Dropped without [`Turn::answered`], the receiver counts as silent.
#[derive(Debug)]
pub(super) struct Turn {
    state: Arc<State>,
    answered: bool,
    probes: bool,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Receivers {
    pub(super) fn new(each: u32) -> Self {
        Self { each: usize::try_from(each).unwrap_or(usize::MAX).max(1), known: Mutex::default() }
    }

    /// Waits a moment for a turn; `None` if there is none.
    pub(super) async fn enter(&self, tenant: &str, webhook: Uuid) -> Option<Turn> {
        let state = self.state((tenant.to_owned(), webhook));
        if !state.is_silent.load(Ordering::Relaxed) {
            let permit = timeout(PATIENCE, Arc::clone(&state.permits).acquire_owned()).await.ok()?.ok()?;
            // While this one waited, the receiver may have shown that it does not answer.
            if !state.is_silent.load(Ordering::Relaxed) {
                return Some(Turn { state, answered: false, probes: false, _permit: Some(permit) });
            }
        }
        let free = !state.is_probed.swap(true, Ordering::Relaxed);
        free.then(|| Turn { state, answered: false, probes: true, _permit: None })
    }

    fn state(&self, receiver: Receiver) -> Arc<State> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED && !known.contains_key(&receiver) {
            known.retain(|_, state| Arc::strong_count(state) > 1 || state.is_silent.load(Ordering::Relaxed));
            // All of them are silent, so each of them may be tried again.
            if known.len() >= REMEMBERED {
                known.clear();
            }
        }
        let fresh = || {
            Arc::new(State {
                permits: Arc::new(Semaphore::new(self.each)),
                is_silent: AtomicBool::new(false),
                is_probed: AtomicBool::new(false),
            })
        };
        Arc::clone(known.entry(receiver).or_insert_with(fresh))
    }
}

impl Turn {
    /// The receiver answered something, or refused the connection at once.
    pub(super) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.state.is_silent.store(!self.answered, Ordering::Relaxed);
        if self.probes {
            self.state.is_probed.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_silent_receiver_holds_one_turn_and_others_are_free() {
        let receivers = Receivers::new(2);
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let first = receivers.enter("acme", one).await.unwrap();
        let second = receivers.enter("acme", one).await.unwrap();
        assert!(receivers.enter("acme", one).await.is_none(), "it waited, and there was no turn");
        assert!(receivers.enter("acme", other).await.is_some() && receivers.enter("globex", one).await.is_some());
        let (waits, ()) = tokio::join!(receivers.enter("acme", one), async { drop(first) });
        let probe = waits.unwrap();
        assert!(receivers.enter("acme", one).await.is_none(), "one is enough to find out");
        drop(second);
        probe.answered();
        let both = (receivers.enter("acme", one).await, receivers.enter("acme", one).await);
        assert!(both.0.is_some() && both.1.is_some(), "it answers again");
    }

    #[tokio::test]
    async fn what_is_remembered_is_bounded() {
        let receivers = Receivers::new(2);
        for n in 0..3_000 {
            let turn = receivers.enter("acme", Uuid::from_u128(n)).await.unwrap();
            if n % 2 == 0 {
                turn.answered();
            }
        }
        assert!(receivers.known.lock().unwrap().len() <= REMEMBERED);
    }
}
