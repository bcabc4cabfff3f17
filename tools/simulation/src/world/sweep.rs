//! Periodic checks of a dispatcher: what is due, and whether the streams still exist.

use std::{collections::HashMap, time::Duration};

use redial_engine::{
    Budget,
    outage::Observation,
    publish::MAX_REPUBLISHED,
    sweep::{Conditions, plan_due},
};
use redial_proto::CallState;
use redial_records::{CallRecord, RetryBucket, Transition};

use super::{clock::duration, ids::CallNo, state::World, tables::CallRow, transaction::CommitOutcome};
use crate::Mutation;

/// Jobs published up to this long before the last successful check may have been lost, in ms.
const BEFORE: i64 = 10_000;

impl World {
    /// Sweeps the due calls in one transaction, then carries out the effects.
    pub(super) fn sweep(&mut self, d: usize, pick: u32, commit: CommitOutcome) {
        self.begin_sweep(d);
        if self.has(Mutation::SweeperOff) || !self.postgres_up || !self.something_is_due() {
            return;
        }
        self.log(|| format!("dispatcher {d} sweeps"));
        let grace = self.dispatchers[d].detector.grace(duration(self.now));
        // Effects follow only if the transaction is committed and the dispatcher still lives.
        let mut written = std::mem::take(&mut self.written);
        let done = self.transaction(d, commit, |world| {
            for transition in world.plan_due(pick, grace) {
                if let Some(facts) = world.apply(&transition) {
                    written.push((transition, facts));
                }
            }
        });
        if done.is_some() {
            for (transition, facts) in &written {
                self.carry_out_all(d, transition, facts);
            }
        }
        written.clear();
        self.written = written;
    }

    /// Tells the outage detector of a sweep. The dispatcher checked the streams and swept every second until now,
    /// unless a server was down: then its connection broke in between.
    fn begin_sweep(&mut self, d: usize) {
        let (outages, now, up) = (self.outages, duration(self.now), self.nats_up && self.postgres_up);
        let dispatcher = &mut self.dispatchers[d];
        let connected = up && dispatcher.outage == outages;
        dispatcher.outage = outages;
        dispatcher.detector.observe(Observation::SweepEnded { failed: false }, now);
        if !dispatcher.check_failed {
            dispatcher.detector.observe(Observation::CheckEnded { began: now, failed: false }, now);
        }
        dispatcher.detector.observe(Observation::SweepBegan { connected }, now);
    }

    fn something_is_due(&self) -> bool {
        self.tables.calls.iter().any(|row| row.is_open() && row.wake_at <= self.now)
    }

    fn plan_due(&self, pick: u32, grace: Duration) -> Vec<Transition> {
        let due = |(_, row): &(usize, &CallRow)| row.is_open() && row.wake_at <= self.now;
        let rows = self.tables.calls.iter().enumerate().filter(due);
        let calls: Vec<CallRecord> = rows.map(|(call, row)| row.record(call as CallNo, self.now)).collect();
        let retry_allowed = self.draining || pick & 7 != 7;
        let tokens = Some(if retry_allowed { Budget::CAPACITY } else { 0.0 });
        let queued = self.jobs.iter().any(|message| message.redeliver_at <= self.now);
        let conditions = Conditions {
            tools: &self.tools,
            buckets: &[RetryBucket { tool: String::new(), tokens, seconds: 0.0 }],
            successes: &HashMap::new(),
            grace,
            republish_limit: MAX_REPUBLISHED,
            queued: &|_| queued,
        };
        plan_due(&calls, &conditions, || f64::from(pick >> 3 & 15) / 16.0).transitions
    }

    /// Checks the streams; if the job stream is new, the unclaimed jobs are published again.
    pub(super) fn check_streams(&mut self, d: usize) {
        let (now, stream, up) = (self.now, self.stream, self.nats_up && self.postgres_up);
        let dispatcher = &mut self.dispatchers[d];
        let had_failed = std::mem::replace(&mut dispatcher.check_failed, !up);
        dispatcher.detector.observe(Observation::CheckEnded { began: duration(now), failed: !up }, duration(now));
        if !up {
            return;
        }
        let after = match (dispatcher.stream == Some(stream), had_failed) {
            (false, _) => Some(0),
            (true, true) => Some(dispatcher.checked_at - BEFORE),
            (true, false) => None,
        };
        (dispatcher.stream, dispatcher.checked_at) = (Some(stream), now);
        if let Some(after) = after {
            self.wake_unclaimed(after);
        }
    }

    /// `wake_unclaimed.sql`: makes unclaimed calls due whose job was published after `after`.
    fn wake_unclaimed(&mut self, after: i64) {
        let now = self.now;
        for row in self.tables.calls.iter_mut().filter(|row| row.is_open() && row.state == CallState::Ready) {
            if row.published_at > after {
                row.wake_at = now;
                // In the distant past, so that the engine does not assume that the job is still queued.
                row.published_at = -1_000_000;
            }
        }
    }
}
