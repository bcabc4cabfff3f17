//! The rows of Postgres.

use redial_engine::Time;
use redial_proto::{CallId, CallState, ErrorClass, JobRef, RetryOverride, TaskState, ToolEffect};
use redial_records::{Backlog, CallFacts, CallRecord, InboxItem, TaskCall};

use super::{Process, TENANTS, TIMEOUT, TOOL, call_id};
use crate::{Setup, random::Random};

#[derive(Clone, Debug)]
pub(super) struct CallRow {
    /// The row as the engine reads it.
    pub(super) record: CallRecord,
    /// Its submission was committed.
    pub(super) exists: bool,
    pub(super) tenant: &'static str,
    pub(super) deadline_ms: u64,
    pub(super) submitted_at: Time,
    /// When a sweep looks at it.
    pub(super) wake_at: Time,
    pub(super) class: Option<ErrorClass>,
    /// Its position in its task; `None` for a bare call.
    pub(super) task: Option<TaskCall>,
    /// What was on record before its last grant, with its next look, as long as that is the last change.
    pub(super) before_grant: Option<Box<(CallRecord, Time)>>,
}

impl CallRow {
    /// Makes a call that has not been submitted yet.
    pub(super) fn new(id: CallId, effect: ToolEffect, max_attempts: u32, deadline_ms: u64) -> Self {
        let retry = RetryOverride {
            initial_ms: Some(500),
            factor: Some(2.0),
            cap_ms: Some(10_000),
            max_attempts: Some(max_attempts),
            deadline_ms: None,
        };
        let record = CallRecord {
            id,
            state: CallState::Ready,
            attempt: 0,
            tool: TOOL.to_owned(),
            pool: String::new(),
            effect,
            retry,
            timeout_ms: TIMEOUT.num_milliseconds().unsigned_abs(),
            traceparent: None,
            deadline_at: Time::default(),
            worker: None,
            claim: None,
            lease_until: None,
            cancel_requested: false,
            publish_no: 0,
            published_at: None,
            consumer: None,
            backlog: None,
            started_at: None,
            origin: None,
            read_at: Time::default(),
        };
        let (submitted_at, wake_at) = (Time::default(), Time::default());
        let tenant = TENANTS[0];
        let (class, task, before_grant) = (None, None, None);
        Self { record, exists: false, tenant, deadline_ms, submitted_at, wake_at, class, task, before_grant }
    }

    /// Makes the bare call of a plan with this number.
    pub(super) fn of_client_call(setup: &Setup, call: u8) -> Self {
        let mut random = Random::new(setup.seed ^ u64::from(call));
        let (effect, most_attempts) = (ToolEffect::ALL[random.below(4) as usize], 1 + random.below(4));
        // A quarter of them have a total deadline that histories reach.
        let deadline_ms = if random.percent(25) { 60_000 } else { 7_200_000 };
        let tenant = TENANTS[random.below(2) as usize];
        Self { tenant, ..Self::new(call_id(call.into()), effect, most_attempts, deadline_ms) }
    }

    pub(super) fn is_open(&self) -> bool {
        self.exists && !self.record.state.is_terminal()
    }

    pub(super) fn is_ready(&self) -> bool {
        self.exists && self.record.state == CallState::Ready
    }

    pub(super) fn max_attempts(&self) -> u32 {
        self.record.retry.max_attempts.unwrap_or(1)
    }

    pub(super) const fn put_back(&mut self) {
        (self.record.backlog, self.wake_at) = (Some(Backlog::Job), self.record.deadline_at);
    }

    /// Returns the row as the engine needs it for effects after a commit.
    pub(super) fn facts(&self, now: Time) -> CallFacts {
        CallFacts {
            claim: self.record.claim,
            call: self.record.id,
            attempt: self.record.attempt,
            tool: self.record.tool.clone(),
            tenant: self.tenant.to_owned(),
            traceparent: None,
            notify: false,
            worker: self.record.worker.clone(),
            submitted_at: self.submitted_at,
            at: now,
            task: None,
        }
    }
}

/// An attempt that ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttemptRow {
    pub(super) job: JobRef,
    pub(super) worker: Process,
    pub(super) started_at: Time,
    pub(super) ended_at: Time,
    /// `None` is a success.
    pub(super) class: Option<ErrorClass>,
}

/// A task; the items of its inbox are rows of their own.
#[derive(Clone, Debug)]
pub(super) struct TaskRow {
    pub(super) exists: bool,
    pub(super) state: TaskState,
    pub(super) progress: Option<String>,
    pub(super) last_step: u32,
    pub(super) submitted_at: Time,
    pub(super) wake_at: Option<Time>,
}

impl Default for TaskRow {
    fn default() -> Self {
        let (state, submitted_at) = (TaskState::Waiting, Time::default());
        Self { exists: false, state, progress: None, last_step: 0, submitted_at, wake_at: None }
    }
}

#[derive(Clone, Debug)]
pub(super) struct InboxRow {
    pub(super) id: u32,
    pub(super) task: usize,
    pub(super) item: InboxItem,
}
