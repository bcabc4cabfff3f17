//! A dispatcher process and its unfinished operations.

use redial_engine::outage::OutageDetector;

use super::{
    clock::{LEASE, LONGEST_RECONNECT, Ms, duration},
    feeder::Feeder,
    ids::{CallNo, Process},
    messages::{Release, ResultMessage},
    tables::CallRow,
};

/// A process; another one replaces it when it dies.
#[derive(Debug)]
pub(super) struct Dispatcher {
    pub(super) process: Process,
    pub(super) detector: OutageDetector,
    /// The number of the last outage that it noticed.
    pub(super) outage: u32,
    /// The job stream that it saw last; a wipe creates a new one.
    pub(super) stream: Option<u32>,
    /// Its last check of the streams failed.
    pub(super) check_failed: bool,
    /// When a check of the streams last succeeded.
    pub(super) checked_at: Option<Ms>,
    pub(super) feeder: Feeder,
    pub(super) operations: Vec<Operation>,
}

/// An operation that takes more than one transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) kind: OperationKind,
    /// The call as the operation last read it.
    pub(super) seen: Option<CallRow>,
    /// The claim of a release has been given up.
    pub(super) given_up: bool,
}

/// Why an operation reads and changes a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum OperationKind {
    Ingest(ResultMessage),
    Release(Release),
    Cancel(Cancel),
}

/// A call is to be cancelled: for a client that waits for the acknowledgement, or for its task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cancel {
    pub(super) call: CallNo,
    pub(super) for_client: bool,
}

impl OperationKind {
    pub(super) const fn call(&self) -> CallNo {
        match self {
            Self::Ingest(message) => message.report.job.call,
            Self::Release(release) => release.grant.job.call,
            Self::Cancel(cancel) => cancel.call,
        }
    }
}

impl Dispatcher {
    /// `window`: how many jobs of a tool it lets wait for a consumer.
    pub(super) fn new(process: Process, now: Ms, window: u64) -> Self {
        let detector = OutageDetector::new(duration(LEASE), duration(LONGEST_RECONNECT), duration(now));
        Self {
            process,
            detector,
            outage: 0,
            stream: None,
            check_failed: false,
            checked_at: None,
            feeder: Feeder::new(window),
            operations: Vec::new(),
        }
    }

    pub(super) fn begin(&mut self, kind: OperationKind) {
        self.operations.push(Operation { kind, seen: None, given_up: false });
    }
}
