//! The tables of Postgres. Rows are small and copied where possible, because a run reads millions of them.

use redial_proto::{CallId, CallState, ErrorClass, RetryOverride, StoredMessage, TaskState, TaskStep, ToolEffect};
use redial_records::{Backlog, CallFacts, CallRecord, InboxItem, TaskCall, TaskTransition, ToolHealth};
use uuid::Uuid;

use super::{
    clock::{Ms, TIMEOUT, time},
    ids::{CallNo, Claim, ConsumerNo, Process, TENANT, TOOLS, ToolNo, ToolSet, call_id, claim_id, worker_id},
    messages::Job,
};

/// A row of `calls`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallRow {
    /// Its submission was committed.
    pub(crate) exists: bool,
    pub(crate) state: CallState,
    pub(crate) attempt: u32,
    pub(crate) tool: ToolNo,
    pub(crate) effect: ToolEffect,
    pub(crate) max_attempts: u32,
    pub(crate) deadline_ms: Ms,
    pub(crate) submitted_at: Ms,
    pub(crate) deadline_at: Ms,
    pub(crate) wake_at: Ms,
    pub(crate) publish_no: u32,
    pub(crate) published_at: Option<Ms>,
    /// Where its job was last published.
    pub(crate) consumer: Option<ConsumerNo>,
    /// The part of the backlog in which it waits, and its position there.
    pub(crate) backlog: Option<Backlog>,
    pub(crate) backlog_at: Ms,
    pub(crate) claim: Claim,
    pub(crate) worker: Process,
    pub(crate) started_at: Ms,
    pub(crate) lease_until: Ms,
    pub(crate) cancel_requested: bool,
    pub(crate) class: Option<ErrorClass>,
    /// Its client serves it.
    pub(crate) of_client: bool,
    /// Its position in its task; `None` for a bare call.
    pub(crate) task: Option<TaskCall>,
    /// The id that the planner gave it; nil for a bare call.
    pub(crate) id: CallId,
}

impl CallRow {
    /// A call that has not been submitted yet.
    pub(crate) const fn new(tool: ToolNo, effect: ToolEffect, max_attempts: u32, deadline_ms: Ms) -> Self {
        Self {
            exists: false,
            state: CallState::Ready,
            attempt: 0,
            tool,
            effect,
            max_attempts,
            deadline_ms,
            submitted_at: 0,
            deadline_at: 0,
            wake_at: 0,
            publish_no: 0,
            published_at: None,
            consumer: None,
            backlog: None,
            backlog_at: 0,
            claim: 0,
            worker: 0,
            started_at: 0,
            lease_until: 0,
            cancel_requested: false,
            class: None,
            of_client: false,
            task: None,
            id: CallId(Uuid::nil()),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.exists && !self.state.is_terminal()
    }

    /// Puts it back into the backlog, behind the calls that were submitted before it.
    pub(crate) const fn put_back(&mut self, backlog: Option<Backlog>) {
        (self.backlog, self.backlog_at, self.wake_at) = (backlog, self.submitted_at, self.deadline_at);
    }

    /// The row as the engine reads it.
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
            timeout_ms: TIMEOUT.unsigned_abs(),
            traceparent: None,
            deadline_at: time(self.deadline_at),
            worker: (self.worker != 0).then(|| worker_id(self.worker)),
            claim: (self.claim != 0).then(|| claim_id(self.claim)),
            lease_until: (self.state == CallState::Running).then(|| time(self.lease_until)),
            worker_heard_after: None,
            cancel_requested: self.cancel_requested,
            publish_no: self.publish_no,
            published_at: self.published_at.map(time),
            consumer: None,
            backlog: self.backlog,
            started_at: (self.attempt > 0).then(|| time(self.started_at)),
            origin: None,
            read_at: time(now),
        }
    }

    /// The row as the engine needs it for effects after a commit.
    pub(crate) fn facts(&self, call: CallNo, now: Ms) -> CallFacts {
        CallFacts {
            claim: (self.claim != 0).then(|| claim_id(self.claim)),
            call: call_id(call),
            attempt: self.attempt,
            tool: TOOLS[usize::from(self.tool)].to_owned(),
            tenant: TENANT.to_owned(),
            traceparent: None,
            notify: false,
            worker: (self.worker != 0).then(|| worker_id(self.worker)),
            submitted_at: time(0),
            at: time(now),
            task: None,
        }
    }
}

/// A row of `workers`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerRow {
    pub(crate) process: Process,
    pub(crate) consumer: ConsumerNo,
    pub(crate) tools: ToolSet,
    pub(crate) seen_at: Ms,
    /// Its last heartbeat was written after this.
    pub(crate) heard_after: Option<Ms>,
    pub(crate) draining: bool,
}

/// The row of `job_stream`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JobStream {
    pub(crate) created: Option<u32>,
    pub(crate) requeued_at: Ms,
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

/// A row of `tasks`; the items of its inbox are rows of their own.
#[derive(Clone, Debug)]
pub(crate) struct TaskRow {
    pub(crate) exists: bool,
    pub(crate) state: TaskState,
    pub(crate) progress: Option<String>,
    pub(crate) last_step: u32,
    pub(crate) submitted_at: Ms,
    pub(crate) wake_at: Option<Ms>,
}

/// A row of `task_inbox`.
#[derive(Clone, Debug)]
pub(crate) struct InboxRow {
    pub(crate) id: u32,
    pub(crate) task: u8,
    pub(crate) item: InboxItem,
}

/// All tables of a history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) calls: Vec<CallRow>,
    pub(crate) workers: Vec<WorkerRow>,
    /// The tools of each consumer.
    pub(crate) consumers: Vec<ToolSet>,
    pub(crate) job_stream: JobStream,
    /// By tool.
    pub(crate) health: Vec<ToolHealth>,
    pub(crate) attempts: Vec<AttemptRow>,
    /// Results that came too late: the attempt and the worker.
    pub(crate) late: Vec<(Job, Process)>,
    pub(crate) tasks: Vec<TaskRow>,
    pub(crate) inbox: Vec<InboxRow>,
    pub(crate) items: u32,
    pub(crate) messages: Vec<StoredMessage>,
    /// The requests to models without their messages, as JSON.
    pub(crate) requests: Vec<(CallId, String)>,
    /// Steps, each with its task.
    pub(crate) steps: Vec<(u8, TaskStep)>,
}

impl Tables {
    pub(crate) fn clear(&mut self) {
        self.calls.clear();
        self.workers.clear();
        self.consumers.clear();
        self.job_stream = JobStream::default();
        self.health.clear();
        self.attempts.clear();
        self.late.clear();
        self.tasks.clear();
        self.inbox.clear();
        self.messages.clear();
        self.requests.clear();
        self.steps.clear();
        self.items = 0;
    }

    pub(crate) fn add_to_inbox(&mut self, task: u8, item: InboxItem) {
        self.items += 1;
        self.inbox.push(InboxRow { id: self.items, task, item });
    }
}

/// A planned transition of a task that is not written yet.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    pub(crate) task: u8,
    pub(crate) transition: TaskTransition,
    /// Items of the inbox that the transition has taken into account.
    pub(crate) received: Vec<u32>,
}
