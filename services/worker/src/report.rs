//! Report: sends the results of attempts, and repeats each one until a dispatcher has put it on record.
//!
//! The first report leaves at once; those that arrive while it is being sent form the next batch. Large ones, which may take seconds,
//! are sent by a reporter of their own and hold up no others.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use redial_proto::{
    Failure, GrantRef, Report, WorkerId,
    limits::{MAX_ERROR_MESSAGE, shorten},
    subjects,
};
use redial_queue::Queue;
use redial_shares::Share;
use redial_telemetry::metrics;
use redial_tools::ToolResult;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{Instant, MissedTickBehavior},
};

use crate::resend::{MAX_BYTES, ResendQueue};

/// Bytes of pending reports above which the worker pulls no more jobs.
const MAX_PENDING: usize = 32 * 1024 * 1024;
/// Bytes above which a report loses the details of its error.
const MAX_REPORT: usize = 900 * 1024;

/// Hands reports to the [`Reporter`]. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ReportSender {
    small: mpsc::UnboundedSender<Command>,
    large: mpsc::UnboundedSender<Command>,
    pending: Arc<PendingCounts>,
}

#[derive(Default)]
struct PendingCounts {
    reports: AtomicUsize,
    bytes: AtomicUsize,
    decreased: Notify,
}

enum Command {
    Send(GrantRef, Box<RawValue>, Option<Share>),
    Forget(Vec<GrantRef>),
}

/// Borrows the reports of a [`redial_proto::ReportBatch`].
#[derive(Serialize)]
struct BorrowedBatch<'a> {
    worker: &'a WorkerId,
    reports: Vec<&'a RawValue>,
}

impl ReportSender {
    pub(crate) fn new(queue: &Queue, worker: &WorkerId, pieces_subject: &str) -> (Self, [Reporter; 2]) {
        let pending = Arc::new(PendingCounts::default());
        let reporter = || {
            let (sender, receiver) = mpsc::unbounded_channel();
            let reporter = Reporter {
                queue: queue.clone(),
                worker: worker.clone(),
                pieces_subject: pieces_subject.to_owned(),
                receiver,
                connections: queue.connections(),
                resend: ResendQueue::default(),
                pending: Arc::clone(&pending),
            };
            (sender, reporter)
        };
        let ((small, of_small), (large, of_large)) = (reporter(), reporter());
        (Self { small, large, pending }, [of_small, of_large])
    }

    /// Counts as a pending report until it is dropped. Held from before an attempt ends until its report is sent:
    /// otherwise a draining worker could find neither an active attempt nor a pending report, and exit in between.
    pub(crate) fn pending_guard(&self) -> PendingGuard {
        PendingCounts::guard(&self.pending)
    }

    /// Sends the result of an attempt that took `ran`. The memory that it holds is free once it is on record.
    pub(crate) fn send(&self, grant: GrantRef, ran: Duration, answer: ToolResult, memory: Option<Share>) {
        let report = encode(grant, ran, answer);
        self.pending.reports.fetch_add(1, Ordering::Relaxed);
        self.pending.bytes.fetch_add(report.get().len(), Ordering::Relaxed);
        let reporter = if report.get().len() > MAX_BYTES { &self.large } else { &self.small };
        // The receiver lives as long as the worker.
        let _ = reporter.send(Command::Send(grant, report, memory));
    }

    /// Drops reports that are on record, or that no dispatcher would accept any more.
    pub(crate) fn forget(&self, grants: Vec<GrantRef>) {
        let _ = self.large.send(Command::Forget(grants.clone()));
        let _ = self.small.send(Command::Forget(grants));
    }

    /// Waits until the pending reports are small enough for the worker to take more jobs.
    pub(crate) async fn wait_for_capacity(&self) {
        self.pending.until(|counts| counts.bytes.load(Ordering::Relaxed) < MAX_PENDING).await;
    }

    /// Waits until all reports are on record.
    pub(crate) async fn wait_until_recorded(&self) {
        self.pending.wait_until_recorded().await;
    }

    /// Counts reports that are not on record.
    pub(crate) fn pending(&self) -> usize {
        self.pending.reports.load(Ordering::Relaxed)
    }
}

pub(crate) struct PendingGuard(Arc<PendingCounts>);

impl Drop for PendingGuard {
    fn drop(&mut self) {
        self.0.removed(0);
    }
}

impl PendingCounts {
    fn guard(counts: &Arc<Self>) -> PendingGuard {
        counts.reports.fetch_add(1, Ordering::Relaxed);
        PendingGuard(Arc::clone(counts))
    }

    async fn wait_until_recorded(&self) {
        self.until(|counts| counts.reports.load(Ordering::Relaxed) == 0).await;
    }

    async fn until(&self, condition: impl Fn(&Self) -> bool) {
        loop {
            let decreased = self.decreased.notified();
            if condition(self) {
                return;
            }
            decreased.await;
        }
    }

    fn removed(&self, bytes: usize) {
        self.reports.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.decreased.notify_waiters();
    }
}

/// Sends reports, and repeats them until they are on record.
pub(crate) struct Reporter {
    queue: Queue,
    worker: WorkerId,
    /// The subject of its requests for pieces, in which large reports travel.
    pieces_subject: String,
    receiver: mpsc::UnboundedReceiver<Command>,
    connections: watch::Receiver<u64>,
    resend: ResendQueue,
    pending: Arc<PendingCounts>,
}

impl Reporter {
    /// Runs until it is dropped.
    pub(crate) async fn run(mut self) {
        let mut ticks = tokio::time::interval(Duration::from_millis(250));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(command) = self.receiver.recv() => self.handle(command),
                now = ticks.tick() => self.resend.resend_due(now),
                Ok(()) = self.connections.changed() => self.resend.resend_all(),
            }
            self.handle_all();
            self.send_all().await;
        }
    }

    fn handle_all(&mut self) {
        while let Ok(command) = self.receiver.try_recv() {
            self.handle(command);
        }
    }

    fn handle(&mut self, command: Command) {
        match command {
            Command::Send(grant, report, memory) => self.resend.add(grant, report, memory),
            Command::Forget(grants) => {
                for bytes in grants.into_iter().filter_map(|grant| self.resend.remove(grant)) {
                    self.pending.removed(bytes);
                }
            }
        }
    }

    /// Sends batches until none is due, or one fails.
    async fn send_all(&mut self) {
        loop {
            let batch = self.resend.batch();
            if batch.is_empty() {
                return;
            }
            let stored = self.send(&batch).await;
            self.resend.sent(&batch, stored, Instant::now());
            if !stored {
                return;
            }
            self.handle_all();
        }
    }

    async fn send(&self, batch: &[GrantRef]) -> bool {
        let reports: Vec<_> = batch.iter().filter_map(|grant| self.resend.report(*grant)).collect();
        metrics().batch_size("report", reports.len());
        let subject = subjects::results(&self.worker.identity());
        let batch_of = BorrowedBatch { worker: &self.worker, reports };
        let sent = self.queue.put_large(&subject, &self.pieces_subject, &batch_of).await;
        if let Err(error) = &sent {
            tracing::warn!(reports = batch.len(), %error, "Failed to send reports");
        }
        sent.is_ok()
    }
}

fn encode(grant: GrantRef, ran: Duration, answer: ToolResult) -> Box<RawValue> {
    let (output, error) = match answer {
        Ok(output) => (Some(output), None),
        Err(failure) => (None, Some(shortened(failure))),
    };
    let duration_ms = u64::try_from(ran.as_millis()).unwrap_or(u64::MAX);
    let GrantRef { call, attempt, claim } = grant;
    let report = Report { call, attempt, claim, duration_ms, output, error };
    match to_raw_value(&report) {
        Ok(raw) if report.error.is_none() || raw.get().len() <= MAX_REPORT => raw,
        Ok(_) => without_details(report),
        Err(error) => {
            // Cannot happen: a struct of plain fields and checked JSON always serialises.
            tracing::error!(%call, %error, "Failed to serialise a report");
            without_details(Report { output: None, ..report })
        }
    }
}

fn without_details(report: Report) -> Box<RawValue> {
    let error = report.error.map(|failure| Failure { details: Vec::new(), ..failure });
    to_raw_value(&Report { error, ..report }).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn shortened(failure: Failure) -> Failure {
    let diagnostics = failure.diagnostics.map(|text| shorten(&text, MAX_ERROR_MESSAGE));
    Failure { message: shorten(&failure.message, MAX_ERROR_MESSAGE), diagnostics, ..failure }
}

#[cfg(test)]
mod tests {
    use redial_proto::{CallId, ClaimId, ErrorClass, FieldError};

    use super::*;

    fn decoded(answer: ToolResult) -> Report {
        let grant = GrantRef { call: CallId::generate(), attempt: 3, claim: ClaimId::generate() };
        let raw = encode(grant, Duration::from_millis(7), answer);
        assert!(raw.get().len() <= MAX_REPORT);
        let report: Report = serde_json::from_str(raw.get()).unwrap();
        assert_eq!((report.grant_ref(), report.duration_ms), (grant, 7));
        report
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_waits_for_reports_that_are_about_to_be_sent() {
        let counts = Arc::new(PendingCounts::default());
        let guard = PendingCounts::guard(&counts);
        // The report is sent before the guard is dropped.
        counts.reports.fetch_add(1, Ordering::Relaxed);
        drop(guard);
        let recorded = tokio::time::timeout(Duration::from_secs(1), counts.wait_until_recorded());
        assert!(recorded.await.is_err(), "the report is not on record yet");
        counts.removed(0);
        counts.wait_until_recorded().await;
        let guard = PendingCounts::guard(&counts);
        let recorded = tokio::time::timeout(Duration::from_secs(1), counts.wait_until_recorded());
        assert!(recorded.await.is_err(), "the report is about to be sent");
        tokio::join!(counts.wait_until_recorded(), async { drop(guard) });
    }

    #[test]
    fn a_report_of_an_error_always_fits_into_a_message() {
        let field_error = FieldError {
            path: "/a".into(),
            rule: "type".into(),
            sent: Some("x".repeat(MAX_REPORT).into()),
            allowed: "a number".into(),
            hint: None,
        };
        let message = "x".repeat(MAX_ERROR_MESSAGE + 1);
        let failure = Failure::new(ErrorClass::InvalidArguments, message).with_details(vec![field_error]);
        let error = decoded(Err(failure)).error.unwrap();
        assert_eq!((error.class, error.details.len()), (ErrorClass::InvalidArguments, 0));
        assert!(error.message.len() <= MAX_ERROR_MESSAGE);
    }
}
