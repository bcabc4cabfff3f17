//! The state machine of a call.

use redial_proto::{CallState, ErrorClass, Failure, GrantRef, RetryPolicy, ToolEffect, WorkerId, limits};
use redial_records::{Backlog, CallRecord, Change, EndedAttempt, Guard, Time, Transition};

use crate::{
    Route,
    mutation::{self, Mutation},
    publish, retry, route,
    span::ms,
};

/// An attempt that its worker has not ended within its timeout and this long after, in ms, is ended by the dispatchers:
/// longer than a worker takes to notice it by itself, and to report it.
pub const TIMEOUT_MARGIN_MS: u64 = 30_000;

/// An attempt whose worker is silent, and which goes on all the same, is looked at so often, in ms: like one with the longest lease.
const UNHEARD_MS: u64 = 3_600_000;

/// A call that only waits because retries are held back after an outage gets so much more time, in ms, as often as it
/// needs it; and so much time at least once it is published.
pub const EXTENSION_MS: u64 = 60_000;
/// A tool that recovers for longer has not recovered: it fails half of the time. Its retries end at their deadlines again.
const LONGEST_RECOVERY_MS: u64 = 3_600_000;

/// What can happen to a call, besides claims and heartbeats: see [`super::grants`].
#[derive(Clone, Debug, PartialEq)]
pub enum CallEvent<'a> {
    /// The worker reports a result.
    Succeeded {
        /// How long the tool ran, in ms.
        duration_ms: u64,
        /// The tool's output: valid JSON.
        output: &'a str,
    },
    /// The worker reports an error.
    Failed {
        /// How long the tool ran, in ms.
        duration_ms: u64,
        failure: &'a Failure,
    },
    /// The worker gives the attempt back; it does not count.
    Released,
    /// It is due: for a retry, because a lease may have ended, because its job may be lost, or for its deadline.
    Due {
        /// No lease counts as expired before this: after an outage workers need time to renew.
        grace_until: Time,
        /// What is known of its job, if it is ready.
        job: JobState,
        /// Why it waits, if it is in the backlog.
        waiting: Waiting,
    },
    Cancel,
    /// The client answered a call of its function: the output as JSON, or why there is none.
    Answered {
        by: &'a str,
        answer: Result<&'a str, &'a Failure>,
    },
}

/// What is known of the job of a call that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// Jobs of its consumer wait for a worker, and its own is likely one of them.
    Queued,
    /// Its consumer has no live workers, no job waits there, or later ones were claimed: its own is lost.
    Lost,
}

/// Why a call waits in the backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Others of its tool are before it.
    InBacklog,
    ForWorker {
        /// When one was last seen, if that is known.
        last_seen: Option<Time>,
    },
    /// Retries of its tool are held back.
    ForRetries {
        /// When the tool's outage ended; `None` if it did not end.
        recovering_since: Option<Time>,
    },
}

/// Decides what an event does to a call; `None` if nothing. `policy` is the retry policy of its tool; `random` is in
/// `[0, 1)` and spreads retries.
///
/// An event that does not fit the state is late or a duplicate: it changes nothing.
pub fn plan(
    call: &CallRecord,
    policy: &RetryPolicy,
    event: &CallEvent<'_>,
    now: Time,
    random: f64,
) -> Option<Transition> {
    let planner = Planner { call, policy: policy.with(&call.retry), now, random };
    let change = match (call.state, event) {
        (CallState::Running, CallEvent::Succeeded { duration_ms, output }) => {
            success(*duration_ms, (*output).to_owned())
        }
        (CallState::Running, CallEvent::Failed { duration_ms, failure }) => {
            planner.after_failure(Some(*duration_ms), (*failure).clone())
        }
        (CallState::Running, CallEvent::Released) => planner.after_release(),
        (CallState::Running, CallEvent::Cancel) => Change::RequestCancel,
        (CallState::Running, CallEvent::Due { grace_until, .. }) => planner.running(*grace_until),
        (CallState::Ready | CallState::RetryWait, CallEvent::Cancel) => {
            ended(CallState::Cancelled, ErrorClass::Cancelled, "cancelled before an attempt started")
        }
        (CallState::Ready | CallState::RetryWait, CallEvent::Due { waiting, .. }) if now >= call.deadline_at => {
            planner.deadline_passed(*waiting)
        }
        (CallState::Ready, CallEvent::Due { .. }) if call.backlog.is_some() => {
            Change::Postpone { wake_at: call.deadline_at }
        }
        (CallState::Ready, CallEvent::Due { job, .. }) => planner.unclaimed(*job),
        (CallState::ClientWait, CallEvent::Answered { by, answer }) => answered(by, *answer),
        (CallState::ClientWait, CallEvent::Cancel) => {
            ended(CallState::Cancelled, ErrorClass::Cancelled, "cancelled before its client answered")
        }
        (CallState::ClientWait, CallEvent::Due { grace_until, .. }) => planner.unanswered(*grace_until),
        (CallState::RetryWait, CallEvent::Due { .. }) => planner.wait(call.attempt, Backlog::Retry),
        _ => return None,
    };
    Some(Transition { call: call.id, guard: guard(call), change })
}

/// Plans the success of an attempt without reading the call: it ends every call that still runs this attempt on this
/// worker under this claim, whatever else is on record.
pub fn succeeded(grant: GrantRef, worker: &WorkerId, duration_ms: u64, output: String) -> Transition {
    let guard = Guard {
        state: CallState::Running,
        attempt: grant.attempt,
        worker: Some(worker.clone()),
        claim: Some(grant.claim),
        cancel_requested: None,
    };
    Transition { call: grant.call, guard, change: success(duration_ms, output) }
}

/// Guards everything that a decision may depend on.
fn guard(call: &CallRecord) -> Guard {
    let running = call.state == CallState::Running;
    Guard {
        state: call.state,
        attempt: call.attempt,
        worker: call.worker.clone().filter(|_| running),
        claim: call.claim.filter(|_| running),
        cancel_requested: Some(call.cancel_requested),
    }
}

enum Next {
    Retry { due_at: Time },
    End { state: CallState, failure: Failure },
}

impl Next {
    fn end(state: CallState, class: ErrorClass, message: impl Into<String>) -> Self {
        Self::End { state, failure: failure_of(state, class, message) }
    }
}

struct Planner<'a> {
    call: &'a CallRecord,
    policy: RetryPolicy,
    now: Time,
    random: f64,
}

impl Planner<'_> {
    /// Decides what follows a failure. Only the record of the attempt keeps the failure's diagnostics: the call's own
    /// failure reaches callers and models.
    fn after_failure(&self, duration_ms: Option<u64>, mut failure: Failure) -> Change {
        failure.message = limits::shorten(&failure.message, limits::MAX_ERROR_MESSAGE);
        let next = self.next(&failure);
        let attempt = EndedAttempt { duration_ms, result: Err(failure) };
        match next {
            Next::Retry { due_at } => Change::Retry { attempt, due_at },
            Next::End { state, failure } => Change::End { state, failure: Some(failure), attempt: Some(attempt) },
        }
    }

    fn next(&self, failure: &Failure) -> Next {
        let retried_anyway = failure.class == ErrorClass::Lost && mutation::is(Mutation::UnsafeRetriedOnLost);
        let uncertain = self.call.effect == ToolEffect::Unsafe && failure.effect_possible && !retried_anyway;
        match route(failure.class) {
            Route::Retry | Route::Uncertain | Route::Unexplained | Route::Bug if uncertain => Next::end(
                CallState::Unknown,
                failure.class,
                format!(
                    "{}; the tool is unsafe and may have done its work: an operator must inspect it",
                    failure.message
                ),
            ),
            Route::End if failure.class == ErrorClass::Cancelled && self.call.cancel_requested => {
                Next::end(CallState::Cancelled, ErrorClass::Cancelled, self.cancelled_while_running(failure))
            }
            Route::Retry | Route::Uncertain => self.retry_or_end(failure),
            Route::Feedback | Route::Unexplained | Route::Operator | Route::End | Route::Bug => {
                Next::end(CallState::Failed, failure.class, failure.message.as_str())
            }
        }
    }

    fn retry_or_end(&self, failure: &Failure) -> Next {
        let (attempt, most) = (self.call.attempt, self.policy.max_attempts);
        if self.call.cancel_requested {
            return Next::end(CallState::Cancelled, ErrorClass::Cancelled, self.cancelled_while_running(failure));
        }
        if attempt >= most && !mutation::is(Mutation::RetriesWithoutCap) {
            let message = format!("{} (attempt {attempt} of {most})", failure.message);
            return Next::end(CallState::Failed, failure.class, message);
        }
        let due_at = retry::due(&self.policy, attempt, failure.retry_after_ms, self.now, self.random);
        if due_at >= self.call.deadline_at {
            let message =
                format!("{} (the next attempt would be due after the call's total deadline)", failure.message);
            return Next::end(CallState::Failed, failure.class, message);
        }
        Next::Retry { due_at }
    }

    fn cancelled_while_running(&self, failure: &Failure) -> &'static str {
        match self.call.effect {
            _ if !failure.effect_possible => "cancelled before the tool did its work",
            ToolEffect::Read => "cancelled while it ran; the tool changes nothing",
            _ => "cancelled while it ran; the tool may have done its work",
        }
    }

    fn after_release(&self) -> Change {
        if self.call.cancel_requested {
            let stopped = Failure::new(ErrorClass::Cancelled, "released by its worker").without_effect();
            return self.after_failure(None, stopped);
        }
        // It does not count.
        self.wait(self.call.attempt.saturating_sub(1), Backlog::Job)
    }

    /// Decides about a running attempt. A lease that is renewed does not keep an attempt alive that should have ended
    /// long ago. Of a worker that does not renew, it is not known what became of the attempt, also if its time is over.
    /// One of an `unsafe` tool is never granted to another worker, so the end of its lease stops nothing: it may be
    /// renewed and reported until its time is over.
    fn running(&self, grace_until: Time) -> Change {
        let lease_ends = self.call.lease_until.map_or(grace_until, |lease| lease.max(grace_until));
        let limit = self.call.started_at.map(|at| at + ms(self.call.timeout_ms.saturating_add(TIMEOUT_MARGIN_MS)));
        let limit = limit.map(|limit| limit.max(grace_until));
        let (unheard, is_over) = (self.now >= lease_ends, limit.is_some_and(|limit| limit <= self.now));
        let goes_on = self.call.effect == ToolEffect::Unsafe && limit.is_some();
        if unheard && !goes_on {
            return self.lost("the worker was lost: its lease expired");
        }
        if is_over && unheard {
            return self.lost("the worker was lost: it was not heard again before the attempt's time was over");
        }
        if is_over {
            let message = format!("it did not end within {} ms, and its worker did not stop it", self.call.timeout_ms);
            return self.after_failure(None, Failure::new(ErrorClass::Timeout, message));
        }
        let next = if unheard { self.now + ms(UNHEARD_MS) } else { lease_ends };
        Change::Postpone { wake_at: limit.map_or(next, |limit| limit.min(next)) }
    }

    fn lost(&self, why: &str) -> Change {
        self.after_failure(None, Failure::new(ErrorClass::Lost, why))
    }

    fn deadline_passed(&self, waiting: Waiting) -> Change {
        let (waits, attempts) = (self.call.backlog.is_some(), self.call.attempt);
        let message = match waiting {
            Waiting::ForRetries { recovering_since: Some(since) }
                if self.call.backlog == Some(Backlog::Retry)
                    && since <= self.call.deadline_at
                    && self.now - since <= ms(LONGEST_RECOVERY_MS) =>
            {
                return Change::Extend { deadline_at: self.now + ms(EXTENSION_MS) };
            }
            Waiting::ForWorker { last_seen } if waits => no_worker(&self.call.tool, last_seen),
            _ if attempts == 0 => "no worker started it before the call's total deadline".to_owned(),
            _ => format!("the call's total deadline passed after {attempts} attempts"),
        };
        ended(CallState::Failed, ErrorClass::BudgetExhausted, message)
    }

    /// Ends a call that its client has not answered. A client cannot answer while no dispatcher can be reached: after
    /// an outage it has the time to.
    fn unanswered(&self, grace_until: Time) -> Change {
        let until = self.call.deadline_at.max(grace_until);
        if self.now < until {
            return Change::Postpone { wake_at: until };
        }
        let message = format!("the client did not answer within {} ms", self.call.timeout_ms);
        ended(CallState::Failed, ErrorClass::Unanswered, message)
    }

    fn unclaimed(&self, job: JobState) -> Change {
        let queued = match (job, self.call.published_at) {
            (JobState::Queued, Some(published_at)) => publish::still_queued(published_at, self.now),
            _ => None,
        };
        match queued {
            None if mutation::is(Mutation::LostJobIsLeft) => {
                Change::Postpone { wake_at: self.check_at(self.now + ms(publish::MAX_CHECK_MS)) }
            }
            Some(check_at) => Change::Postpone { wake_at: self.check_at(check_at) },
            None => self.wait(self.call.attempt, Backlog::Job),
        }
    }

    /// Lets a call wait; it need not be looked at before its deadline.
    fn wait(&self, attempt: u32, backlog: Backlog) -> Change {
        Change::Wait { attempt, backlog, check_at: self.call.deadline_at }
    }

    /// Returns when to look at a call that is ready: not later than its deadline.
    fn check_at(&self, at: Time) -> Time {
        at.min(self.call.deadline_at)
    }
}

fn success(duration_ms: u64, output: String) -> Change {
    let attempt = EndedAttempt { duration_ms: Some(duration_ms), result: Ok(output) };
    Change::End { state: CallState::Succeeded, failure: None, attempt: Some(attempt) }
}

/// Takes a client's answer. A call of a function is never tried again, and what the client did is the client's to know.
fn answered(by: &str, answer: Result<&str, &Failure>) -> Change {
    let result = answer.map(str::to_owned).map_err(|failure| Failure { effect_possible: false, ..failure.clone() });
    let result = result.map_err(Failure::within_limits);
    Change::Answer { by: by.to_owned(), attempt: EndedAttempt { duration_ms: None, result } }
}

/// Ends a call without an attempt.
fn ended(state: CallState, class: ErrorClass, message: impl Into<String>) -> Change {
    Change::End { state, failure: Some(failure_of(state, class, message)), attempt: None }
}

fn no_worker(tool: &str, last_seen: Option<Time>) -> String {
    let seen = last_seen.map(|at| format!("; one was last seen at {}", at.format("%Y-%m-%dT%H:%M:%SZ")));
    format!("no live worker had the tool {tool:?} before the call's total deadline{}", seen.unwrap_or_default())
}

/// Makes the failure of a call, which says by `effect_possible` on record whether it is unknown what the tool did.
fn failure_of(state: CallState, class: ErrorClass, message: impl Into<String>) -> Failure {
    let message = limits::shorten(&message.into(), limits::MAX_ERROR_MESSAGE);
    Failure { effect_possible: state == CallState::Unknown, ..Failure::new(class, message) }
}
