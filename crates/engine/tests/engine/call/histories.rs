//! Any interleaving of events, late and doubled ones among them, leaves a legal history.

use chrono::TimeDelta;
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng};
use redial_engine::{
    Time,
    call::{CallEvent, Holding, JobState, Waiting, grants, plan},
};
use redial_proto::{CallState, ClaimId, ErrorClass, Failure, RetryPolicy, ToolEffect};
use redial_records::{CallRecord, Change, Claim};
use uuid::Uuid;

use super::fixture::{self, call, now};

/// A call with the bookkeeping that the store does, and the facts that the invariants are about.
struct History {
    call: CallRecord,
    policy: RetryPolicy,
    now: Time,
    claims: u128,
    /// Numbers of the attempts in the audit.
    audited: Vec<u32>,
    /// Attempts in which the tool may have done its work.
    effects: u32,
    ends: u32,
    cancel_acknowledged: bool,
}

impl History {
    fn new(effect: ToolEffect, max_attempts: u32) -> Self {
        let now = now();
        let policy = RetryPolicy { initial_ms: 500, factor: 2.0, cap_ms: 5000, max_attempts, deadline_ms: 120_000 };
        let call = CallRecord { effect, deadline_at: now + TimeDelta::seconds(120), ..call(CallState::Ready, 0) };
        Self { call, policy, now, claims: 0, audited: Vec::new(), effects: 0, ends: 0, cancel_acknowledged: false }
    }

    /// A call of a function of the client.
    fn of_client() -> Self {
        let mut history = Self::new(ToolEffect::Unsafe, 1);
        (history.call.state, history.call.published_at) = (CallState::ClientWait, None);
        history
    }

    fn claim(&mut self, attempt: u32) {
        self.claims += 1;
        let claim = ClaimId(Uuid::from_u128(self.claims));
        let asked = Claim { claim, ..fixture::claim(attempt) };
        if !grants(&self.call, &asked, self.now) {
            return;
        }
        let before = self.call.clone();
        assert!(!self.cancel_acknowledged, "nothing starts after an acknowledged cancel");
        self.call.state = CallState::Running;
        self.call.attempt += 1;
        (self.call.claim, self.call.worker) = (Some(claim), Some(asked.worker));
        self.call.lease_until = Some(self.now + TimeDelta::seconds(15));
        (self.call.started_at, self.call.backlog) = (Some(self.now), None);
        self.check(&before);
    }

    /// The feeder takes the call from the backlog.
    fn feed(&mut self) {
        if self.call.state == CallState::Ready && self.call.backlog.take().is_some() {
            self.call.published_at = Some(self.now);
            self.call.publish_no += 1;
        }
    }

    /// A heartbeat of its worker.
    fn renew(&mut self) {
        if self.call.state == CallState::Running {
            self.call.lease_until = Some(self.now + TimeDelta::seconds(15));
        }
    }

    fn apply(&mut self, event: &CallEvent<'_>, random: f64) {
        let before = self.call.clone();
        let Some(transition) = plan(&self.call, &self.policy, event, self.now, random) else { return };
        if let Some(attempt) = transition.ended_attempt() {
            let may_end = matches!(before.state, CallState::Running | CallState::ClientWait);
            assert!(may_end, "an attempt ends only while it runs, or with the answer of a client");
            self.audited.push(transition.attempt());
            self.effects += u32::from(attempt.result.as_ref().map_or_else(|failure| failure.effect_possible, |_| true));
        }
        (self.call.state, self.call.attempt) = (transition.state(), transition.attempt());
        match transition.change {
            Change::Wait { backlog, check_at, .. } => {
                assert_eq!(check_at, self.call.deadline_at);
                self.call.backlog = Some(backlog);
            }
            Change::Extend { deadline_at } => {
                assert!(deadline_at > self.now);
                self.call.deadline_at = deadline_at;
            }
            Change::Postpone { wake_at } => assert!(wake_at > self.now),
            Change::RequestCancel => self.call.cancel_requested = true,
            Change::Retry { due_at, .. } => assert!(due_at >= self.now),
            Change::Answer { .. } => {
                assert_eq!(before.state, CallState::ClientWait);
                self.ends += 1;
            }
            Change::End { state, failure, .. } => {
                assert!(state.is_terminal() && state != CallState::Refused);
                assert_eq!(failure.is_none(), state == CallState::Succeeded);
                self.ends += 1;
                self.call.backlog = None;
                self.cancel_acknowledged |= matches!(event, CallEvent::Cancel);
            }
        }
        self.check(&before);
    }

    fn check(&self, before: &CallRecord) {
        assert!(!before.state.is_terminal() || self.call == *before, "a terminal call changed");
        assert!(self.ends <= 1);
        assert!(self.call.backlog.is_none() || self.call.state == CallState::Ready, "only a ready call waits");
        assert!(self.call.attempt <= self.policy.max_attempts);
        assert!((1..).zip(&self.audited).all(|(wanted, found)| wanted == *found), "gaps: {:?}", self.audited);
        if self.call.effect == ToolEffect::Unsafe {
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
    let event = match rng.random_range(0..15) {
        0..=3 => return history.claim((history.call.attempt + rng.random_range(0..3)).max(1)),
        4 => CallEvent::Succeeded { duration_ms: 1, output: "{}" },
        5..=7 => CallEvent::Failed { duration_ms: 1, failure: &failure },
        8 => CallEvent::Released,
        9 => CallEvent::Cancel,
        10 => return history.feed(),
        11 => return history.renew(),
        12 => CallEvent::Answered { by: "client", answer: if rng.random() { Ok("{}") } else { Err(&failure) } },
        _ => due(history, rng),
    };
    history.apply(&event, rng.random());
}

/// A sweep in any circumstances; the tool recovers for three minutes at most.
fn due(history: &History, rng: &mut StdRng) -> CallEvent<'static> {
    let job = if rng.random() { JobState::Queued } else { JobState::Lost };
    let recovers = history.now < now() + TimeDelta::minutes(3);
    let waiting = match rng.random_range(0..4) {
        0 => Waiting::InBacklog,
        1 => Waiting::ForWorker { last_seen: None },
        _ => Waiting::ForRetries { recovering_since: recovers.then(now) },
    };
    let holding = match rng.random_range(0..4) {
        0 => Holding::Nobody,
        1 => Holding::Unnamed { look_at: history.now + TimeDelta::seconds(5) },
        _ => Holding::Unknown,
    };
    CallEvent::Due { grace_until: now(), job, waiting, holding }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_call_left_alone_with_the_sweeper_ends(seed: u64, steps in 0_usize..30, effect in 0_usize..5) {
        let mut rng = StdRng::seed_from_u64(seed);
        let of_tool = ToolEffect::ALL.get(effect).map(|effect| History::new(*effect, 4));
        let mut history = of_tool.unwrap_or_else(History::of_client);
        for _ in 0..steps {
            random_event(&mut history, &mut rng);
        }
        // Only time passes now: timeouts pass, retries come due, the deadline passes. Nobody feeds the queue, and a worker
        // that does not end its attempt renews its lease.
        for _ in 0..40 {
            history.now += TimeDelta::seconds(16);
            history.renew();
            let event = due(&history, &mut rng);
            history.apply(&event, rng.random());
        }
        prop_assert!(history.call.state.is_terminal(), "{:?}", history.call);
    }
}
