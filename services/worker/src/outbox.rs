//! Reports that are not on record yet: which to send next, which to send again. Pure.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use redial_proto::{JobRef, limits::MAX_CLAIM};
use serde_json::value::RawValue;
use tokio::time::Instant;

/// Bytes of reports in one message; one report may be larger than that and then travels alone.
const MAX_BYTES: usize = 700 * 1024;
/// A report that was put on the stream and is not on record after this long is sent again; the wait then doubles.
const RESEND: Duration = Duration::from_secs(5);
/// Longest wait between two sendings.
const RESEND_CAP: Duration = Duration::from_secs(60);
/// A report that could not be put on the stream is tried again after this long.
const RETRY: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(crate) struct Outbox {
    reports: HashMap<JobRef, Waiting>,
    /// To be sent now, in this order; may name reports that are gone.
    next: VecDeque<JobRef>,
}

struct Waiting {
    report: Box<RawValue>,
    sent: u32,
    /// When to send it again; `None` while it stands in `next`.
    due: Option<Instant>,
}

impl Outbox {
    pub(crate) fn add(&mut self, job: JobRef, report: Box<RawValue>) {
        self.next.push_back(job);
        self.reports.insert(job, Waiting { report, sent: 0, due: None });
    }

    /// Returns the size of the report, if it was there.
    pub(crate) fn remove(&mut self, job: JobRef) -> Option<usize> {
        self.reports.remove(&job).map(|waiting| waiting.report.get().len())
    }

    /// Everything is to be sent again: nobody knows what became of it.
    pub(crate) fn resend_all(&mut self) {
        self.resend(|_| true);
    }

    /// What was not on record in time is to be sent again.
    pub(crate) fn resend_due(&mut self, now: Instant) {
        self.resend(|due| due <= now);
    }

    fn resend(&mut self, which: impl Fn(Instant) -> bool) {
        for (job, waiting) in &mut self.reports {
            if waiting.due.is_some_and(&which) {
                waiting.due = None;
                self.next.push_back(*job);
            }
        }
    }

    /// The next message's reports.
    pub(crate) fn batch(&mut self) -> Vec<JobRef> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(job) = self.next.front() {
            if let Some(waiting) = self.reports.get(job) {
                bytes += waiting.report.get().len() + 1;
                if batch.len() == MAX_CLAIM || (bytes > MAX_BYTES && !batch.is_empty()) {
                    break;
                }
                batch.push(*job);
            }
            self.next.pop_front();
        }
        batch
    }

    pub(crate) fn report(&self, job: JobRef) -> Option<&RawValue> {
        self.reports.get(&job).map(|waiting| &*waiting.report)
    }

    /// A message was put on the stream, or not.
    pub(crate) fn sent(&mut self, batch: &[JobRef], stored: bool, now: Instant) {
        for job in batch {
            let Some(waiting) = self.reports.get_mut(job) else { continue };
            let wait = if stored { (RESEND * (1 << waiting.sent.min(8))).min(RESEND_CAP) } else { RETRY };
            waiting.sent += u32::from(stored);
            waiting.due = Some(now + wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use redial_proto::CallId;

    use super::*;

    fn job() -> JobRef {
        JobRef { call: CallId::generate(), attempt: 1 }
    }

    fn report(bytes: usize) -> Box<RawValue> {
        RawValue::from_string(format!("\"{}\"", "x".repeat(bytes - 2))).unwrap()
    }

    fn filled(sizes: &[usize]) -> (Outbox, Vec<JobRef>) {
        let mut outbox = Outbox::default();
        let jobs: Vec<_> = sizes.iter().map(|_| job()).collect();
        for (job, size) in jobs.iter().zip(sizes) {
            outbox.add(*job, report(*size));
        }
        (outbox, jobs)
    }

    #[test]
    fn batches_keep_order_count_and_size() {
        let (mut outbox, jobs) = filled(&[100; 300]);
        assert_eq!(outbox.batch(), jobs[..256]);
        assert_eq!(outbox.batch(), jobs[256..]);
        assert!(outbox.batch().is_empty());
        let (mut outbox, jobs) = filled(&[400_000, 300_000, 400_000, 900_000, 10]);
        for wanted in [&jobs[..2], &jobs[2..3], &jobs[3..4], &jobs[4..]] {
            assert_eq!(outbox.batch(), wanted);
        }
    }

    #[test]
    fn a_report_is_sent_again_until_it_is_on_record() {
        let (mut outbox, jobs) = filled(&[10, 10]);
        let mut now = Instant::now();
        for wait in [5, 10, 20, 40, 60, 60] {
            let mut batch = outbox.batch();
            batch.sort_by_key(|job| job.call);
            assert_eq!(batch, jobs);
            outbox.sent(&batch, true, now);
            outbox.resend_due(now + Duration::from_secs(wait) - Duration::from_millis(1));
            assert!(outbox.batch().is_empty(), "before {wait} s");
            now += Duration::from_secs(wait);
            outbox.resend_due(now);
        }
        assert_eq!(outbox.remove(jobs[0]), Some(10));
        assert_eq!(outbox.remove(jobs[0]), None);
        assert_eq!(outbox.batch(), jobs[1..]);
    }

    #[test]
    fn what_was_not_stored_is_tried_again_soon() {
        let (mut outbox, jobs) = filled(&[10]);
        let (batch, now) = (outbox.batch(), Instant::now());
        outbox.sent(&batch, false, now);
        outbox.resend_due(now + RETRY);
        assert_eq!(outbox.batch(), jobs);
    }

    #[test]
    fn after_a_reconnection_everything_is_sent_once_more() {
        let (mut outbox, jobs) = filled(&[10, 10]);
        let batch = outbox.batch();
        outbox.sent(&batch[..1], true, Instant::now());
        outbox.resend_all();
        outbox.resend_all();
        assert_eq!(outbox.batch(), jobs[..1], "the other one is being sent");
    }
}
