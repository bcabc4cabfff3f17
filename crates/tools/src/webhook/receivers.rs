//! How many deliveries a receiver, and all receivers of a tenant, may owe an answer: those that do not answer must not take the
//! slots of all others.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use redial_shares::{Share, Shares};
use tokio::time::timeout;
use uuid::Uuid;

/// How long a delivery waits for its turn. A receiver that answers gives many turns meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);
/// Receivers that are remembered; beyond, those that are idle and well are forgotten.
const REMEMBERED: usize = 1_000;

type Receiver = (String, Uuid);

/// The receivers that this worker delivers to.
#[derive(Debug)]
pub(super) struct Receivers {
    known: Mutex<HashMap<Receiver, Arc<State>>>,
    each: Shares,
    /// Those that tenants share.
    all: Shares,
    /// Of each tenant, to receivers that did not answer the last time.
    probes: Shares,
}

/// Deliveries at the same time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// To one receiver.
    pub(super) each: usize,
    /// To all receivers, which tenants share.
    pub(super) all: usize,
    /// Of these, for each tenant, to receivers that did not answer the last time.
    pub(super) probes: usize,
}

#[derive(Debug, Default)]
struct State {
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
    _shares: [Share; 2],
}

impl Receivers {
    pub(super) fn new(limits: Limits) -> Self {
        let Limits { each, all, probes } = limits;
        Self {
            known: Mutex::default(),
            each: Shares::of_each(each),
            all: Shares::new(all),
            probes: Shares::of_each(probes),
        }
    }

    /// Waits a moment for a turn; `None` if there is none.
    pub(super) async fn enter(&self, tenant: &str, webhook: Uuid) -> Option<Turn> {
        let state = self.state((tenant.to_owned(), webhook));
        if !state.is_silent.load(Ordering::Relaxed) {
            let shares = timeout(PATIENCE, self.shares(tenant, webhook)).await.ok()?;
            // While this one waited, the receiver may have shown that it does not answer.
            if !state.is_silent.load(Ordering::Relaxed) {
                return Some(Turn { state, answered: false, probes: false, _shares: shares });
            }
        }
        // For a receiver that does not answer nobody waits.
        let shares = [self.probes.try_take(tenant, 1)?, self.all.try_take(tenant, 1)?];
        let free = !state.is_probed.swap(true, Ordering::Relaxed);
        free.then(|| Turn { state, answered: false, probes: true, _shares: shares })
    }

    async fn shares(&self, tenant: &str, webhook: Uuid) -> [Share; 2] {
        let of_receiver = self.each.take(&format!("{tenant} {webhook}"), 1).await;
        [of_receiver, self.all.take(tenant, 1).await]
    }

    fn state(&self, receiver: Receiver) -> Arc<State> {
        let mut known = self.known.lock();
        if known.len() >= REMEMBERED && !known.contains_key(&receiver) {
            known.retain(|_, state| Arc::strong_count(state) > 1 || state.is_silent.load(Ordering::Relaxed));
            // All of them are silent, so each of them may be tried again.
            if known.len() >= REMEMBERED {
                known.clear();
            }
        }
        Arc::clone(known.entry(receiver).or_default())
    }
}

impl Turn {
    /// Records that the receiver answered something, or refused the connection at once.
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

    const LIMITS: Limits = Limits { each: 2, all: 8, probes: 2 };

    /// Each of its receivers may be asked whether it answers again, but not all at once.
    #[tokio::test(start_paused = true)]
    async fn the_silent_receivers_of_a_tenant_leave_turns_to_others() {
        let receivers = Receivers::new(LIMITS);
        let hooks: Vec<Uuid> = (0..10).map(Uuid::from_u128).collect();
        let mut held = Vec::new();
        for &webhook in &hooks {
            held.extend(receivers.enter("acme", webhook).await);
        }
        assert_eq!(held.len(), LIMITS.all / 2, "the first time nobody knows that they do not answer");
        assert!(receivers.enter("globex", hooks[0]).await.is_some(), "another tenant has its own");
        while !held.is_empty() {
            held.clear();
            for &webhook in &hooks {
                held.extend(receivers.enter("acme", webhook).await.filter(|turn| !turn.probes));
            }
        }
        for &webhook in &hooks {
            held.extend(receivers.enter("acme", webhook).await);
        }
        assert_eq!(held.len(), LIMITS.probes);
        held.pop().unwrap().answered();
        assert!(receivers.enter("acme", hooks[1]).await.is_some_and(|turn| !turn.probes), "it answers again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_receiver_holds_one_turn_and_others_are_free() {
        let receivers = Receivers::new(LIMITS);
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

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded() {
        let receivers = Receivers::new(LIMITS);
        for n in 0..3_000 {
            let turn = receivers.enter(&format!("acme-{n}"), Uuid::from_u128(n)).await.unwrap();
            if n % 2 == 0 {
                turn.answered();
            }
        }
        assert!(receivers.known.lock().len() <= REMEMBERED);
    }
}
