//! Messages that are left to dispatchers of a newer version: how often they are looked at again, and how many there may be.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use redial_proto::{WorkerIdentity, subjects::results_identity};
use redial_queue::Delivery;

/// A message is delivered again after this, perhaps to a dispatcher of a newer version; then each time after twice as long.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_mins(5);
/// Messages of one worker identity in an hour. The stream keeps room for 500,000 that are not answered, for all of them together, and
/// that a message is of a newer version is only its sender's word.
const MOST: u32 = 10_000;
/// Bytes of them, of the 1 GiB that the stream has for all identities.
const MOST_BYTES: usize = 32 << 20;
const HOUR: Duration = Duration::from_hours(1);

/// How much of each identity was left in the last hour.
#[derive(Default)]
pub(crate) struct Left(Mutex<HashMap<WorkerIdentity, Count>>);

#[derive(Clone, Copy)]
struct Count {
    since: Instant,
    messages: u32,
    bytes: usize,
}

impl Count {
    const fn has_room(&self) -> bool {
        self.messages < MOST && self.bytes < MOST_BYTES
    }
}

impl Left {
    /// Whether more messages of this sender may be left. What cannot be read of the others is wrong.
    pub(crate) fn has_room(&self, subject: &str) -> bool {
        let left = self.0.lock();
        let count = results_identity(subject).and_then(|identity| left.get(&identity).copied());
        count.is_none_or(|count| count.has_room() || count.since.elapsed() >= HOUR)
    }

    /// Leaves a message.
    pub(crate) async fn leave(&self, delivery: &Delivery) {
        if delivery.delivered <= 1 {
            self.count(delivery.subject(), delivery.payload.len());
        }
        delivery.nak(pause(delivery.delivered)).await;
    }

    fn count(&self, subject: &str, bytes: usize) {
        let Some(identity) = results_identity(subject) else { return };
        let mut left = self.0.lock();
        left.retain(|_, count| count.since.elapsed() < HOUR);
        let count = left.entry(identity).or_insert_with(|| Count { since: Instant::now(), messages: 0, bytes: 0 });
        count.messages += 1;
        count.bytes += bytes;
    }
}

fn pause(delivered: u64) -> Duration {
    let doubled = u32::try_from(delivered.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
    (FIRST * 2_u32.pow(doubled)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_five_minutes() {
        let seconds: Vec<u64> = [1, 2, 3, 7, 1_000].map(|delivered| pause(delivered).as_secs()).to_vec();
        assert_eq!(seconds, [5, 10, 20, 300, 300]);
    }

    #[test]
    fn one_identity_leaves_so_many_messages_and_bytes_in_an_hour() {
        let left = Left::default();
        (0..MOST).for_each(|_| left.count("redial.results.tools", 100));
        assert!(!left.has_room("redial.results.tools"));
        assert!(left.has_room("redial.results.others"));
        let large = (0..MOST)
            .take_while(|_| left.has_room("redial.results.others"))
            .map(|_| left.count("redial.results.others", 1 << 20));
        assert_eq!(large.count(), 32);
    }
}
