//! Rows of the tables, messages on the wire, and what really happened: small, copied, never shared.

use std::{fmt, time::Duration};

use chrono::DateTime;
use redial_engine::Time;
use redial_proto::{CallId, CallState, ClaimId, Effect, ErrorClass, Message, RetryOverride, TaskState, WorkerId};
use redial_records::{CallFacts, CallRecord};
use uuid::Uuid;

/// Ms since the history began, by the database's clock.
pub(crate) type Ms = i64;

/// A worker process, or a dispatcher process: a new one gets a new number. 0 is none.
pub(crate) type Process = u16;

/// A request of a worker for attempts. 0 is none.
pub(crate) type Claim = u32;

/// A call, by its position in the table.
pub(crate) type CallNo = u8;

pub(crate) fn time(ms: Ms) -> Time {
    DateTime::from_timestamp_millis(ms).unwrap_or_default()
}

pub(crate) fn since(time: Time) -> Ms {
    time.timestamp_millis()
}

/// The same moment as the engine's outage detector takes it.
pub(crate) fn uptime(now: Ms) -> Duration {
    Duration::from_millis(now.unsigned_abs())
}

/// A row of `calls`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// It was submitted, and that was committed.
    pub(crate) exists: bool,
    pub(crate) state: CallState,
    pub(crate) attempt: u32,
    pub(crate) effect: Effect,
    pub(crate) max_attempts: u32,
    pub(crate) deadline_ms: Ms,
    pub(crate) deadline_at: Ms,
    pub(crate) wake_at: Ms,
    pub(crate) publish_no: u32,
    pub(crate) published_at: Ms,
    pub(crate) claim: Claim,
    pub(crate) worker: Process,
    pub(crate) started_at: Ms,
    pub(crate) lease_until: Ms,
    pub(crate) cancel_requested: bool,
    pub(crate) class: Option<ErrorClass>,
    pub(crate) position: Option<CallPosition>,
    /// As its task knows it; nil for a bare call.
    pub(crate) id: CallId,
}

/// Whose call it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallPosition {
    pub(crate) task: u8,
    pub(crate) turn: u32,
    /// 0 is the model itself.
    pub(crate) call_index: u32,
}

impl Row {
    /// A call that is not submitted yet.
    pub(crate) const fn new(effect: Effect, max_attempts: u32, deadline_ms: Ms) -> Self {
        Self {
            exists: false,
            state: CallState::Ready,
            attempt: 0,
            effect,
            max_attempts,
            deadline_ms,
            deadline_at: 0,
            wake_at: 0,
            publish_no: 0,
            published_at: 0,
            claim: 0,
            worker: 0,
            started_at: 0,
            lease_until: 0,
            cancel_requested: false,
            class: None,
            position: None,
            id: CallId(Uuid::nil()),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.exists && !self.state.is_terminal()
    }

    /// As the engine reads it.
    pub(crate) fn record(&self, call: CallNo, now: Ms) -> CallRecord {
        CallRecord {
            id: call_id(call),
            state: self.state,
            attempt: self.attempt,
            tool: String::new(),
            pool: String::new(),
            effect: self.effect,
            retry: RetryOverride {
                initial_ms: Some(500),
                factor: Some(2.0),
                cap_ms: Some(10_000),
                max_attempts: Some(self.max_attempts),
                deadline_ms: None,
            },
            timeout_ms: 1_000,
            traceparent: None,
            deadline_at: time(self.deadline_at),
            worker: (self.worker != 0).then(|| worker_id(self.worker)),
            claim: (self.claim != 0).then(|| claim_id(self.claim)),
            lease_until: (self.state == CallState::Running).then(|| time(self.lease_until)),
            cancel_requested: self.cancel_requested,
            publish_no: self.publish_no,
            published_at: time(self.published_at),
            origin: None,
            read_at: time(now),
        }
    }

    /// The facts for the engine after a commit.
    pub(crate) fn facts(&self, call: CallNo, now: Ms) -> CallFacts {
        CallFacts {
            call: call_id(call),
            attempt: self.attempt,
            tool: String::new(),
            pool: String::new(),
            publish_no: self.publish_no,
            traceparent: None,
            notify: false,
            worker: (self.worker != 0).then(|| worker_id(self.worker)),
            submitted_at: time(0),
            at: time(now),
            bytes: 2,
            task: None,
        }
    }
}

pub(crate) fn call_id(call: CallNo) -> CallId {
    CallId(Uuid::from_u128(u128::from(call)))
}

pub(crate) const fn call_no(id: CallId) -> CallNo {
    id.0.as_u128() as CallNo
}

pub(crate) fn claim_id(claim: Claim) -> ClaimId {
    ClaimId(Uuid::from_u128(u128::from(claim)))
}

#[expect(clippy::expect_used, reason = "a number is a valid id")]
pub(crate) fn worker_id(process: Process) -> WorkerId {
    process.to_string().parse().expect("digits are allowed")
}

/// The process of a worker's id; 0 if it is none of this world.
pub(crate) fn process_of(worker: &WorkerId) -> Process {
    worker.as_str().parse().unwrap_or(0)
}

/// A row of `attempts`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttemptRow {
    pub(crate) job: Job,
    pub(crate) worker: Process,
    pub(crate) started_at: Ms,
    pub(crate) ended_at: Ms,
    /// `None` is a success.
    pub(crate) class: Option<ErrorClass>,
}

/// A row of `tasks`, with the inbox's items in a table of their own.
#[derive(Clone, Debug)]
pub(crate) struct TaskRow {
    pub(crate) exists: bool,
    pub(crate) state: TaskState,
    pub(crate) progress: Option<String>,
    pub(crate) last_step: u32,
    pub(crate) wake_at: Option<Ms>,
}

/// A row of `task_inbox`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) id: u32,
    pub(crate) task: u8,
    pub(crate) what: ItemKind,
}

/// An item of a task's inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Start,
    Cancel,
    Ended(CallNo),
    Retrying,
}

/// The tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) calls: Vec<Row>,
    pub(crate) attempts: Vec<AttemptRow>,
    /// Reports that came late.
    pub(crate) late: Vec<(Job, Process)>,
    pub(crate) tasks: Vec<TaskRow>,
    pub(crate) inbox: Vec<Item>,
    pub(crate) items: u32,
    pub(crate) messages: Vec<(u32, Message)>,
    /// What models were asked, as JSON.
    pub(crate) requests: Vec<(CallId, String)>,
    /// Task and number.
    pub(crate) steps: Vec<(u8, u32)>,
}

impl Tables {
    pub(crate) fn clear(&mut self) {
        self.calls.clear();
        self.attempts.clear();
        self.late.clear();
        self.tasks.clear();
        self.inbox.clear();
        self.messages.clear();
        self.requests.clear();
        self.steps.clear();
        self.items = 0;
    }

    pub(crate) fn add_item(&mut self, task: u8, what: ItemKind) {
        self.items += 1;
        self.inbox.push(Item { id: self.items, task, what });
    }
}

/// One attempt of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) call: CallNo,
    pub(crate) attempt: u32,
}

/// Up to four attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Jobs {
    jobs: [Job; 4],
    count: u8,
}

impl Jobs {
    pub(crate) const MOST: usize = 4;

    pub(crate) fn push(&mut self, job: Job) {
        if usize::from(self.count) < Self::MOST {
            self.jobs[usize::from(self.count)] = job;
            self.count += 1;
        }
    }

    pub(crate) fn as_slice(&self) -> &[Job] {
        &self.jobs[..usize::from(self.count)]
    }
}

/// How an attempt ended, by its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// `None` is a success.
    pub(crate) class: Option<ErrorClass>,
    pub(crate) effect_possible: bool,
    pub(crate) retry_after: Option<u64>,
}

/// What a worker puts on the stream of results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) job: Job,
    pub(crate) worker: Process,
    pub(crate) outcome: Outcome,
}

/// A message on the stream of jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobMessage {
    pub(crate) seq: u32,
    pub(crate) job: Job,
    pub(crate) deliveries: u32,
    /// Not given to anybody before this.
    pub(crate) again_at: Ms,
}

/// A message on the stream of results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultMessage {
    pub(crate) seq: u32,
    pub(crate) report: Report,
    pub(crate) again_at: Ms,
}

/// A granted attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) job: Job,
    pub(crate) claim: Claim,
}

/// A message that no stream stores.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Packet {
    Claim { worker: Process, claim: Claim, jobs: Jobs, deliveries: u32 },
    Granted { worker: Process, claim: Claim, jobs: Jobs },
    Heartbeat { worker: Process, heartbeat: u32, jobs: Jobs },
    HeartbeatReply { worker: Process, heartbeat: u32, held: Jobs, lost: Jobs, cancelled: Jobs },
    Release { worker: Process, grant: Grant },
    Released { worker: Process, grant: Grant },
    Ingested { worker: Process, job: Job },
    Stop { worker: Process, job: Job },
}

impl Packet {
    /// The worker that sent it or gets it, and whether it gets it.
    pub(crate) const fn worker(&self) -> (Process, bool) {
        match self {
            Self::Claim { worker, .. } | Self::Heartbeat { worker, .. } | Self::Release { worker, .. } => {
                (*worker, false)
            }
            Self::Granted { worker, .. }
            | Self::HeartbeatReply { worker, .. }
            | Self::Released { worker, .. }
            | Self::Ingested { worker, .. }
            | Self::Stop { worker, .. } => (*worker, true),
        }
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim { claim, .. } => write!(f, "the request for claim {claim}"),
            Self::Granted { claim, .. } => write!(f, "the answer to claim {claim}"),
            Self::Heartbeat { .. } => f.write_str("a heartbeat"),
            Self::HeartbeatReply { .. } => f.write_str("the answer to a heartbeat"),
            Self::Release { grant, .. } => write!(f, "the release of claim {}", grant.claim),
            Self::Released { grant, .. } => write!(f, "the answer to the release of claim {}", grant.claim),
            Self::Ingested { job, .. } => write!(f, "the notice that the result of call {} is on record", job.call),
            Self::Stop { job, .. } => write!(f, "the notice to stop call {}", job.call),
        }
    }
}

/// An execution of a tool, as it really was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution {
    pub(crate) job: Job,
    pub(crate) worker: Process,
    /// The tool has done its work.
    pub(crate) effect: bool,
    /// Its worker stopped it half-way.
    pub(crate) stopped: bool,
    pub(crate) reported: Option<Outcome>,
}

/// What really happened, and what was guaranteed: the tables are compared with this.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) executions: Vec<Execution>,
    /// Submissions that were acknowledged, by call and by task.
    pub(crate) calls: u64,
    pub(crate) tasks: u64,
    /// Calls whose cancel was acknowledged.
    pub(crate) cancelled: u128,
    /// Claims that were given up.
    pub(crate) given_up: Vec<Grant>,
    /// By process: it was killed, stopped or cut off.
    pub(crate) disturbed: Vec<bool>,
}

impl Ledger {
    pub(crate) fn clear(&mut self) {
        self.executions.clear();
        self.given_up.clear();
        self.disturbed.clear();
        (self.calls, self.tasks, self.cancelled) = (0, 0, 0);
    }
}
