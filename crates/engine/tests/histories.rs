//! Any interleaving of events, late and doubled ones among them, leaves a legal history.

use chrono::TimeDelta;
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng};
use redial_engine::{Call, Event, Next, Time, step};
use redial_proto::{CallState, Effect, ErrorClass, Failure, RetryPolicy};

/// A call with the bookkeeping that the store does, and the facts that the invariants are about.
struct History {
    call: Call,
    now: Time,
    /// Numbers of the attempts in the audit.
    audited: Vec<u32>,
    /// Attempts in which the tool may have done its work.
    effects: u32,
    ends: u32,
    cancel_acknowledged: bool,
}

impl History {
    fn new(effect: Effect, max_attempts: u32) -> Self {
        let now = Time::default();
        let retry = RetryPolicy { initial_ms: 500, factor: 2.0, cap_ms: 5000, max_attempts, deadline_ms: 120_000 };
        let deadline_at = now + TimeDelta::seconds(120);
        let call = Call {
            state: CallState::Ready,
            attempt: 0,
            effect,
            retry,
            deadline_at,
            lease_until: None,
            cancel_requested: false,
        };
        Self { call, now, audited: Vec::new(), effects: 0, ends: 0, cancel_acknowledged: false }
    }

    fn apply(&mut self, event: &Event<'_>, random: f64) {
        let before = self.call.clone();
        let step = step(&self.call, event, self.now, random);
        if let Some(failure) = &step.ended_attempt {
            assert_eq!(before.state, CallState::Running, "only a running attempt can end");
            self.audited.push(before.attempt);
            self.effects += u32::from(failure.as_ref().is_none_or(|failure| failure.effect_possible));
        }
        match step.next {
            Next::Unchanged | Next::Unclaimed => {}
            Next::StillRunning { until } => assert!(until > self.now),
            Next::Running => {
                assert!(!self.cancel_acknowledged, "nothing starts after an acknowledged cancel");
                self.call.state = CallState::Running;
                self.call.attempt += 1;
                self.call.lease_until = Some(self.now + TimeDelta::seconds(15));
            }
            Next::StopWorker => self.call.cancel_requested = true,
            Next::Ready => {
                self.call.state = CallState::Ready;
                if matches!(event, Event::Released) {
                    self.call.attempt -= 1;
                }
            }
            Next::RetryWait { until } => {
                assert!(until >= self.now);
                self.call.state = CallState::RetryWait;
            }
            Next::Ended { state, why } => {
                assert!(state.is_terminal() && state != CallState::Refused);
                assert_eq!(why.is_none(), state == CallState::Succeeded);
                self.call.state = state;
                self.ends += 1;
                self.cancel_acknowledged |= matches!(event, Event::Cancel);
            }
        }
        self.check(&before);
    }

    fn check(&self, before: &Call) {
        assert!(!before.state.is_terminal() || self.call == *before, "a terminal call changed");
        assert!(self.ends <= 1);
        assert!(self.call.attempt <= self.call.retry.max_attempts);
        assert!((1..).zip(&self.audited).all(|(wanted, found)| wanted == *found), "gaps: {:?}", self.audited);
        if self.call.effect == Effect::Unsafe {
            assert!(self.effects <= 1, "an unsafe tool may have run twice");
        }
        if self.call.state.is_terminal() {
            assert_eq!(self.audited.len(), self.call.attempt as usize, "each attempt is in the audit");
        }
    }
}

fn random_event(history: &mut History, rng: &mut StdRng) {
    history.now += TimeDelta::milliseconds(rng.random_range(0..6000));
    let class = ErrorClass::ALL[rng.random_range(0..ErrorClass::ALL.len())];
    let mut failure = Failure::new(class, "m");
    failure.effect_possible = rng.random();
    failure.retry_after_ms = rng.random_bool(0.2).then(|| rng.random_range(0..90_000));
    let event = match rng.random_range(0..12) {
        0..=3 => Event::Claim { attempt: (history.call.attempt + rng.random_range(0..3)).max(1) },
        4 => Event::Succeeded,
        5..=7 => Event::Failed(&failure),
        8 => Event::Released,
        9 => Event::Cancel,
        _ => Event::Woken { retry_allowed: rng.random(), grace_until: Time::default() },
    };
    history.apply(&event, rng.random());
}

#[test]
fn a_hundred_thousand_random_histories_are_legal() {
    let mut rng = StdRng::seed_from_u64(20_261_120);
    let (mut ended, mut states) = (0_u32, std::collections::BTreeMap::<&str, u32>::new());
    for _ in 0..100_000 {
        let effect = Effect::ALL[rng.random_range(0..4)];
        let mut history = History::new(effect, rng.random_range(1..6));
        for _ in 0..25 {
            random_event(&mut history, &mut rng);
        }
        ended += history.ends;
        *states.entry(history.call.state.as_str()).or_default() += 1;
    }
    println!("100000 histories, {ended} ended: {states:?}");
    for state in ["succeeded", "failed", "unknown", "cancelled"] {
        assert!(states[state] > 1000, "the histories must reach {state} often: {states:?}");
    }
}

proptest! {
    #[test]
    fn a_call_left_alone_with_the_sweeper_ends(seed: u64, steps in 0_usize..30, effect in 0_usize..4) {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut history = History::new(Effect::ALL[effect], 4);
        for _ in 0..steps {
            random_event(&mut history, &mut rng);
        }
        // No worker and no user any more, only time: leases expire, retries come due, the deadline passes.
        for _ in 0..40 {
            history.now += TimeDelta::seconds(16);
            history.apply(&Event::Woken { retry_allowed: true, grace_until: Time::default() }, rng.random());
        }
        prop_assert!(history.call.state.is_terminal(), "{:?}", history.call);
    }
}
