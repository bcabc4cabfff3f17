//! Transitions of calls: one decision each, guarded by all that it depended on.

use redial_proto::{CallId, CallState, ClaimId, Failure, TaskId, WorkerId};

use crate::{Time, call::Backlog};

/// One decision about one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    pub call: CallId,
    /// What the call must still be; otherwise nothing happens.
    pub guard: Guard,
    pub change: Change,
}

/// What a call must still be for a transition to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    pub state: CallState,
    pub attempt: u32,
    /// Its worker, if that matters: with the attempt the fencing token of a report.
    pub worker: Option<WorkerId>,
    /// The claim that was granted, if that matters: a released attempt is granted again under the same number.
    pub claim: Option<ClaimId>,
    /// Whether its user asked to stop it, if the decision depended on that.
    pub cancel_requested: Option<bool>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It is `ready`, and waits in the backlog until its job is published: for the first time in this attempt, or again.
    Wait {
        attempt: u32,
        backlog: Backlog,
        /// When the sweeper checks it.
        check_at: Time,
    },
    /// Its deadline moves: it waits only because retries are held back after an outage of its tool.
    Extend { deadline_at: Time },
    /// Only the time of the sweeper's next check changes.
    Postpone { wake_at: Time },
    /// Its user wants it stopped: its worker is notified.
    RequestCancel,
    /// Its attempt failed, and another one is planned.
    Retry { attempt: EndedAttempt, due_at: Time },
    /// Its client has answered it: it ends, after an attempt that no worker ran.
    Answer {
        /// Who answered, as the record of the attempt names it.
        by: String,
        attempt: EndedAttempt,
    },
    End {
        /// A terminal state.
        state: CallState,
        /// Why, unless it succeeded.
        failure: Option<Failure>,
        /// How its attempt ended; `None` if it ended without one.
        attempt: Option<EndedAttempt>,
    },
}

impl Transition {
    pub const fn state(&self) -> CallState {
        match self.change {
            Change::Wait { .. } => CallState::Ready,
            Change::Postpone { .. } | Change::Extend { .. } | Change::RequestCancel => self.guard.state,
            Change::Retry { .. } => CallState::RetryWait,
            Change::Answer { ref attempt, .. } if attempt.result.is_ok() => CallState::Succeeded,
            Change::Answer { .. } => CallState::Failed,
            Change::End { state, .. } => state,
        }
    }

    /// Counts the attempts started after the transition.
    pub const fn attempt(&self) -> u32 {
        match self.change {
            Change::Wait { attempt, .. } => attempt,
            Change::Answer { .. } => self.guard.attempt + 1,
            _ => self.guard.attempt,
        }
    }

    pub const fn ended_attempt(&self) -> Option<&EndedAttempt> {
        match &self.change {
            Change::Retry { attempt, .. } | Change::Answer { attempt, .. } => Some(attempt),
            Change::End { attempt, .. } => attempt.as_ref(),
            Change::Wait { .. } | Change::Postpone { .. } | Change::Extend { .. } | Change::RequestCancel => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct EndedAttempt {
    /// How long the tool ran, in ms, if its worker reported it.
    pub duration_ms: Option<u64>,
    /// The tool's output, valid JSON, or why there is none.
    pub result: Result<String, Failure>,
}

/// What a committed transition left on record, as far as its effects need it.
#[derive(Clone, Debug, PartialEq)]
pub struct CallFacts {
    pub call: CallId,
    /// Attempts started.
    pub attempt: u32,
    pub tool: String,
    /// Whose call it is.
    pub tenant: String,
    /// W3C trace context of the submission.
    pub traceparent: Option<String>,
    /// Its submitter wants an event at the end.
    pub notify: bool,
    /// The worker of the current or last attempt.
    pub worker: Option<WorkerId>,
    pub claim: Option<ClaimId>,
    pub submitted_at: Time,
    /// When the transition happened.
    pub at: Time,
    /// The task whose inbox got an item: one of its calls ended or will be retried.
    pub task: Option<TaskId>,
}
