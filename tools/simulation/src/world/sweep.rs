//! What dispatchers look at by themselves: what is due, and whether the streams are still there.

use redial_engine::Event;
use redial_proto::CallState;

use super::{
    World,
    database::Fate,
    rows::{CallNo, time},
};
use crate::Bug;

/// Jobs that were published this long before NATS was last seen well may have been lost with it, in ms.
const BEFORE: i64 = 10_000;

impl World {
    /// Looks at everything that is due, in one transaction in which the rows are locked.
    pub(super) fn sweep(&mut self, d: usize, pick: u32, fate: Fate) {
        if !self.nats_up || !self.postgres_up {
            self.dispatchers[d].well_since = self.now;
        }
        if self.has(Bug::SweeperOff) || !self.postgres_up || !self.something_is_due() {
            return;
        }
        self.tell(|| format!("dispatcher {d} sweeps"));
        let grace_until = self.grace_until(d);
        // Only what is committed is acted upon, and only if the dispatcher is still there to do it.
        let mut acts = std::mem::take(&mut self.acts);
        let done = self.transaction(d, fate, |world| {
            for call in 0..world.tables.calls.len() {
                let row = world.tables.calls[call];
                if !row.is_open() || row.wake_at > world.now {
                    continue;
                }
                let change = world.look_at(call as CallNo, pick, grace_until);
                if world.apply(&change) {
                    acts.push(change);
                }
            }
        });
        if done.is_some() {
            for change in &acts {
                self.act(change);
            }
        }
        acts.clear();
        self.acts = acts;
    }

    fn something_is_due(&self) -> bool {
        self.tables.calls.iter().any(|row| row.is_open() && row.wake_at <= self.now)
    }

    fn look_at(&self, call: CallNo, pick: u32, grace_until: i64) -> super::database::Change {
        let row = self.row(call);
        let retry_allowed = self.draining || pick & 7 != 7;
        let event = Event::Woken { retry_allowed, grace_until: time(grace_until) };
        let random = f64::from(pick >> 3 & 15) / 16.0;
        self.change(call, &row, &event, random).unwrap_or_else(|| self.unclaimed(call, &row))
    }

    /// Looks at the streams; what was on a stream that is new is published again.
    pub(super) fn watch(&mut self, d: usize) {
        let (now, stream) = (self.now, self.stream);
        let dispatcher = &mut self.dispatchers[d];
        if !self.nats_up || !self.postgres_up {
            dispatcher.troubled = true;
            dispatcher.well_since = now;
            return;
        }
        let after = match (dispatcher.stream == Some(stream), dispatcher.troubled) {
            (false, _) => Some(0),
            (true, true) => Some(dispatcher.well_at - BEFORE),
            (true, false) => None,
        };
        if dispatcher.troubled {
            dispatcher.well_since = now;
        }
        (dispatcher.stream, dispatcher.troubled, dispatcher.well_at) = (Some(stream), false, now);
        if let Some(after) = after {
            self.wake_unclaimed(after);
        }
    }

    /// `wake_unclaimed`: makes unclaimed calls due whose job was published in this time.
    fn wake_unclaimed(&mut self, after: i64) {
        let now = self.now;
        for row in self.tables.calls.iter_mut().filter(|row| row.is_open() && row.state == CallState::Ready) {
            if row.published_at > after {
                row.wake_at = now;
                // Long ago: nobody takes the job for one that still waits.
                row.published_at = -1_000_000;
            }
        }
    }
}
