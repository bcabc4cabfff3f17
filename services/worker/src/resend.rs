//! The queue of reports that are not on record yet: which to send next, and when to send one again. Pure.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use redial_backoff::Backoff;
use redial_proto::{GrantRef, limits::MAX_CLAIM};
use redial_shares::Share;
use serde_json::value::RawValue;
use tokio::time::Instant;

/// Bytes of reports in one message. A larger report gets its own message.
pub(crate) const MAX_BYTES: usize = 700 * 1024;
/// A report that is on the stream but not on record after this long is sent again; the time doubles with each
/// repetition.
const RESEND: Backoff = Backoff::new(Duration::from_secs(5), Duration::from_mins(1));
/// So much more for each MiB, from when its last piece was sent: a large one takes longer to be put on record.
const PER_MIB: Duration = Duration::from_secs(5);
/// But no more than this. If the first copy is lost, the second one has to arrive before the dispatchers end the attempt, which is 30 s
/// after its timeout.
const MOST_FOR_LARGE: Duration = Duration::from_secs(10);
/// A report that could not be put on the stream is sent again after this long.
const RETRY: Duration = Duration::from_millis(500);

/// Reports by grant, and the order in which they are sent.
#[derive(Default)]
pub(crate) struct ResendQueue {
    reports: HashMap<GrantRef, PendingReport>,
    /// Due now, in this order; may name reports that were removed.
    next: VecDeque<GrantRef>,
}

struct PendingReport {
    report: Box<RawValue>,
    _memory: Option<Share>,
    /// How many times it was put on the stream.
    sent: u32,
    /// When to send it again; `None` while it is in `next` or being sent.
    due: Option<Instant>,
}

impl ResendQueue {
    pub(crate) fn add(&mut self, grant: GrantRef, report: Box<RawValue>, memory: Option<Share>) {
        self.next.push_back(grant);
        self.reports.insert(grant, PendingReport { report, _memory: memory, sent: 0, due: None });
    }

    /// Returns the size of the removed report.
    pub(crate) fn remove(&mut self, grant: GrantRef) -> Option<usize> {
        self.reports.remove(&grant).map(|pending| pending.report.get().len())
    }

    /// Makes all sent reports due, because a lost connection may have lost them.
    pub(crate) fn resend_all(&mut self) {
        self.resend(|_| true);
    }

    /// Makes the reports due whose time has come.
    pub(crate) fn resend_due(&mut self, now: Instant) {
        self.resend(|due| due <= now);
    }

    fn resend(&mut self, which: impl Fn(Instant) -> bool) {
        for (grant, pending) in &mut self.reports {
            if pending.due.is_some_and(&which) {
                pending.due = None;
                self.next.push_back(*grant);
            }
        }
    }

    /// Takes the reports of the next message.
    pub(crate) fn batch(&mut self) -> Vec<GrantRef> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(grant) = self.next.front() {
            if let Some(pending) = self.reports.get(grant) {
                bytes += pending.report.get().len() + 1;
                if batch.len() == MAX_CLAIM || (bytes > MAX_BYTES && !batch.is_empty()) {
                    break;
                }
                batch.push(*grant);
            }
            self.next.pop_front();
        }
        batch
    }

    pub(crate) fn report(&self, grant: GrantRef) -> Option<&RawValue> {
        self.reports.get(&grant).map(|pending| &*pending.report)
    }

    /// Schedules the next repetition of reports that were sent; `stored` tells whether the stream took them.
    pub(crate) fn sent(&mut self, batch: &[GrantRef], stored: bool, now: Instant) {
        for grant in batch {
            let Some(pending) = self.reports.get_mut(grant) else { continue };
            pending.sent += u32::from(stored);
            let mib = u32::try_from(pending.report.get().len() >> 20).unwrap_or(u32::MAX);
            let large = PER_MIB.saturating_mul(mib).min(MOST_FOR_LARGE);
            let wait = if stored { RESEND.doubled(pending.sent) + large } else { RETRY };
            pending.due = Some(now + wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use redial_proto::{CallId, ClaimId};

    use super::*;

    fn grant() -> GrantRef {
        GrantRef { call: CallId::generate(), attempt: 1, claim: ClaimId::generate() }
    }

    fn report(bytes: usize) -> Box<RawValue> {
        RawValue::from_string(format!("\"{}\"", "x".repeat(bytes - 2))).unwrap()
    }

    fn filled(sizes: &[usize]) -> (ResendQueue, Vec<GrantRef>) {
        let mut queue = ResendQueue::default();
        let grants: Vec<_> = sizes.iter().map(|_| grant()).collect();
        for (grant, size) in grants.iter().zip(sizes) {
            queue.add(*grant, report(*size), None);
        }
        (queue, grants)
    }

    #[test]
    fn batches_respect_order_count_and_size() {
        let (mut queue, jobs) = filled(&[100; 300]);
        assert_eq!(queue.batch(), jobs[..256]);
        assert_eq!(queue.batch(), jobs[256..]);
        assert!(queue.batch().is_empty());
        let (mut queue, jobs) = filled(&[400_000, 300_000, 400_000, 900_000, 10]);
        for wanted in [&jobs[..2], &jobs[2..3], &jobs[3..4], &jobs[4..]] {
            assert_eq!(queue.batch(), wanted);
        }
    }

    /// Sends all of it, and again after each of these waits in s, and not before.
    fn repeats(queue: &mut ResendQueue, jobs: &[GrantRef], waits: &[u64]) {
        let mut now = Instant::now();
        for wait in waits {
            let mut batch = queue.batch();
            batch.sort();
            assert_eq!(batch, jobs);
            queue.resend_due(now + RESEND.doubled(9));
            assert!(queue.batch().is_empty(), "it is still being sent");
            queue.sent(&batch, true, now);
            queue.resend_due(now + Duration::from_secs(*wait) - Duration::from_millis(1));
            assert!(queue.batch().is_empty(), "before {wait} s");
            now += Duration::from_secs(*wait);
            queue.resend_due(now);
        }
    }

    #[test]
    fn a_report_is_repeated_until_it_is_on_record() {
        let (mut queue, jobs) = filled(&[10, 10]);
        repeats(&mut queue, &jobs, &[5, 10, 20, 40, 60, 60]);
        assert_eq!(queue.remove(jobs[0]), Some(10));
        assert_eq!(queue.remove(jobs[0]), None);
        assert_eq!(queue.batch(), jobs[1..]);
    }

    #[test]
    fn a_large_report_is_repeated_later_but_before_its_attempt_is_ended_for_it() {
        for (bytes, waits) in [(1 << 20, [10, 15]), (16 << 20, [15, 20])] {
            let (mut queue, jobs) = filled(&[bytes]);
            repeats(&mut queue, &jobs, &waits);
        }
    }

    #[test]
    fn a_report_that_the_stream_did_not_take_is_sent_again_soon() {
        let (mut queue, jobs) = filled(&[10]);
        let (batch, now) = (queue.batch(), Instant::now());
        queue.sent(&batch, false, now);
        queue.resend_due(now + RETRY);
        assert_eq!(queue.batch(), jobs);
    }

    #[test]
    fn after_a_reconnection_every_sent_report_is_sent_once_more() {
        let (mut queue, jobs) = filled(&[10, 10]);
        let batch = queue.batch();
        queue.sent(&batch[..1], true, Instant::now());
        queue.resend_all();
        queue.resend_all();
        assert_eq!(queue.batch(), jobs[..1], "the other report is still being sent");
    }
}
