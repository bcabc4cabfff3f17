//! Report: tells how attempts ended, again and again until a dispatcher has it on record.
//!
//! Batches form by themselves: the first report goes out at once, what ends meanwhile goes out with the next message.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use redial_proto::{
    Failure, JobRef, Report, WorkerId,
    limits::{MAX_ERROR_MESSAGE, shorten},
    subjects,
};
use redial_queue::Queue;
use redial_telemetry::metrics;
use redial_tools::Answer;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{Instant, MissedTickBehavior},
};

use crate::outbox::Outbox;

/// Bytes of reports that may wait; above, no more jobs are taken.
const MAX_WAITING: usize = 32 * 1024 * 1024;
/// A report larger than this loses the details of its error.
const MAX_REPORT: usize = 900 * 1024;

/// Where reports are handed in. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reports {
    sender: mpsc::UnboundedSender<Message>,
    waiting: Arc<Counts>,
}

/// Reports that are not on record.
#[derive(Default)]
struct Counts {
    reports: AtomicUsize,
    bytes: AtomicUsize,
    fewer: Notify,
}

enum Message {
    New(JobRef, Box<RawValue>),
    Forget(Vec<JobRef>),
}

/// What stands on the stream: a [`redial_proto::ReportBatch`], borrowed.
#[derive(Serialize)]
struct Batch<'a> {
    worker: &'a WorkerId,
    reports: Vec<&'a RawValue>,
}

impl Reports {
    pub(crate) fn new(queue: Queue, worker: WorkerId) -> (Self, Reporter) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let waiting = Arc::new(Counts::default());
        let connections = queue.connections();
        let outbox = Outbox::default();
        let reporter = Reporter { queue, worker, receiver, connections, outbox, waiting: Arc::clone(&waiting) };
        (Self { sender, waiting }, reporter)
    }

    /// To be held from before an attempt is taken off the list until its report is handed in: meanwhile neither says that
    /// there is something to wait for.
    pub(crate) fn coming(&self) -> Coming {
        Counts::coming(&self.waiting)
    }

    /// Hands in how an attempt ended, after `ran`.
    pub(crate) fn send(&self, job: JobRef, ran: Duration, answer: Answer) {
        let report = encode(job, ran, answer);
        self.waiting.reports.fetch_add(1, Ordering::Relaxed);
        self.waiting.bytes.fetch_add(report.get().len(), Ordering::Relaxed);
        // The reporter ends only with the worker.
        let _ = self.sender.send(Message::New(job, report));
    }

    /// On record, or not this worker's business any more.
    pub(crate) fn forget(&self, jobs: Vec<JobRef>) {
        let _ = self.sender.send(Message::Forget(jobs));
    }

    /// Waits until few enough bytes wait.
    pub(crate) async fn room(&self) {
        self.waiting.until(|counts| counts.bytes.load(Ordering::Relaxed) < MAX_WAITING).await;
    }

    /// Waits until everything is on record.
    pub(crate) async fn flushed(&self) {
        self.waiting.flushed().await;
    }

    /// Reports that are not on record.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.reports.load(Ordering::Relaxed)
    }
}

/// A report that is about to be handed in, or an attempt that turns out to have nothing to say.
pub(crate) struct Coming(Arc<Counts>);

impl Drop for Coming {
    fn drop(&mut self) {
        self.0.removed(0);
    }
}

impl Counts {
    fn coming(counts: &Arc<Self>) -> Coming {
        counts.reports.fetch_add(1, Ordering::Relaxed);
        Coming(Arc::clone(counts))
    }

    async fn flushed(&self) {
        self.until(|counts| counts.reports.load(Ordering::Relaxed) == 0).await;
    }

    async fn until(&self, enough: impl Fn(&Self) -> bool) {
        loop {
            let fewer = self.fewer.notified();
            if enough(self) {
                return;
            }
            fewer.await;
        }
    }

    fn removed(&self, bytes: usize) {
        self.reports.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.fewer.notify_waiters();
    }
}

/// Sends what was handed in.
pub(crate) struct Reporter {
    queue: Queue,
    worker: WorkerId,
    receiver: mpsc::UnboundedReceiver<Message>,
    connections: watch::Receiver<u64>,
    outbox: Outbox,
    waiting: Arc<Counts>,
}

impl Reporter {
    /// Runs until it is dropped.
    pub(crate) async fn run(mut self) {
        let mut ticks = tokio::time::interval(Duration::from_millis(250));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(message) = self.receiver.recv() => self.accept(message),
                now = ticks.tick() => self.outbox.resend_due(now),
                Ok(()) = self.connections.changed() => self.outbox.resend_all(),
            }
            self.accept_all();
            self.send_all().await;
        }
    }

    fn accept_all(&mut self) {
        while let Ok(message) = self.receiver.try_recv() {
            self.accept(message);
        }
    }

    fn accept(&mut self, message: Message) {
        match message {
            Message::New(job, report) => self.outbox.add(job, report),
            Message::Forget(jobs) => {
                for bytes in jobs.into_iter().filter_map(|job| self.outbox.remove(job)) {
                    self.waiting.removed(bytes);
                }
            }
        }
    }

    /// Sends message after message while there is something to send.
    async fn send_all(&mut self) {
        loop {
            let batch = self.outbox.batch();
            if batch.is_empty() {
                return;
            }
            let stored = self.send(&batch).await;
            self.outbox.sent(&batch, stored, Instant::now());
            if !stored {
                return;
            }
            self.accept_all();
        }
    }

    async fn send(&self, batch: &[JobRef]) -> bool {
        let reports: Vec<_> = batch.iter().filter_map(|job| self.outbox.report(*job)).collect();
        metrics().batch_size("report", reports.len());
        let sent = self.queue.put(subjects::RESULTS, &Batch { worker: &self.worker, reports }).await;
        if let Err(error) = &sent {
            tracing::warn!(reports = batch.len(), "reports could not be sent, trying again: {error}");
        }
        sent.is_ok()
    }
}

fn encode(job: JobRef, ran: Duration, answer: Answer) -> Box<RawValue> {
    let (output, error) = match answer {
        Ok(output) => (Some(output), None),
        Err(failure) => (None, Some(shortened(failure))),
    };
    let duration_ms = u64::try_from(ran.as_millis()).unwrap_or(u64::MAX);
    let report = Report { call: job.call, attempt: job.attempt, duration_ms, output, error };
    match to_raw_value(&report) {
        Ok(raw) if raw.get().len() <= MAX_REPORT => raw,
        Ok(_) => without_details(report),
        Err(error) => {
            // A struct of plain fields and checked JSON always serialises.
            tracing::error!(call = %job.call, "a report could not be written: {error}");
            without_details(Report { output: None, ..report })
        }
    }
}

fn without_details(report: Report) -> Box<RawValue> {
    let error = report.error.map(|failure| Failure { details: Vec::new(), ..failure });
    to_raw_value(&Report { error, ..report }).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn shortened(failure: Failure) -> Failure {
    Failure { message: shorten(&failure.message, MAX_ERROR_MESSAGE), ..failure }
}

#[cfg(test)]
mod tests {
    use redial_proto::{CallId, ErrorClass, FieldError};

    use super::*;

    fn decoded(answer: Answer) -> Report {
        let job = JobRef { call: CallId::generate(), attempt: 3 };
        let raw = encode(job, Duration::from_millis(7), answer);
        assert!(raw.get().len() <= MAX_REPORT);
        let report: Report = serde_json::from_str(raw.get()).unwrap();
        assert_eq!((report.job_ref(), report.duration_ms), (job, 7));
        report
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_that_is_coming_is_waited_for() {
        let counts = Arc::new(Counts::default());
        let coming = Counts::coming(&counts);
        // Handed in, and then no more coming.
        counts.reports.fetch_add(1, Ordering::Relaxed);
        drop(coming);
        let flushed = tokio::time::timeout(Duration::from_secs(1), counts.flushed());
        assert!(flushed.await.is_err(), "it is not on record yet");
        counts.removed(0);
        counts.flushed().await;
        let coming = Counts::coming(&counts);
        let flushed = tokio::time::timeout(Duration::from_secs(1), counts.flushed());
        assert!(flushed.await.is_err(), "it is about to be handed in");
        tokio::join!(counts.flushed(), async { drop(coming) });
    }

    #[test]
    fn outputs_travel_to_the_letter() {
        let text = r#"{"a" : 1e400000, "a":"\u0000\ud800"}"#;
        let report = decoded(Ok(RawValue::from_string(text.into()).unwrap()));
        assert_eq!(report.output.unwrap().get(), text);
    }

    #[test]
    fn an_error_always_fits_a_message() {
        let violation = FieldError {
            path: "/a".into(),
            rule: "type".into(),
            sent: "x".repeat(MAX_REPORT).into(),
            allowed: "a number".into(),
            hint: None,
        };
        let message = "x".repeat(MAX_ERROR_MESSAGE + 1);
        let failure = Failure::new(ErrorClass::InvalidArguments, message).with_details(vec![violation]);
        let error = decoded(Err(failure)).error.unwrap();
        assert_eq!((error.class, error.details.len()), (ErrorClass::InvalidArguments, 0));
        assert!(error.message.len() <= MAX_ERROR_MESSAGE);
    }
}
