//! The state machine of a call.

use redial_proto::{CallState, ErrorClass, Failure, JobRef, RetryPolicy, ToolEffect, WorkerId, limits};
use redial_records::{CallRecord, Change, EndedAttempt, Guard, Time, Transition};

use crate::{
    Route,
    mutation::{self, Mutation},
    publish::{self, Unclaimed},
    retry, route,
    span::ms,
};

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
        /// The error.
        failure: &'a Failure,
    },
    /// The worker gives the attempt back; it does not count.
    Released,
    /// It is due: for a retry, because a lease may have ended, because its job may be lost, or for its deadline.
    Due {
        /// Whether the tool's retry budget has a token for this call.
        retry_allowed: bool,
        /// No lease counts as expired before this: after an outage workers need time to renew.
        grace_until: Time,
        /// Whether its job may be published again.
        republish: Republish,
    },
    /// The user wants it stopped.
    Cancel,
}

/// Whether the job of an unclaimed call may be published again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Republish {
    /// At once: no job of its pool waits for a worker.
    Now,
    /// Only after a long time: jobs of its pool wait for workers, and its own job is likely one of them.
    IfOverdue,
    /// Not now: enough jobs were published again.
    Later,
}

/// What an event does to a call; `None` if nothing. `policy` is the retry policy of its tool; `random` is in `[0, 1)`
/// and spreads retries.
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
        (CallState::Running, CallEvent::Due { grace_until, .. }) => planner.after_lease(*grace_until),
        (CallState::Ready | CallState::RetryWait, CallEvent::Cancel) => {
            ended(CallState::Cancelled, ErrorClass::Cancelled, "cancelled before an attempt started")
        }
        (CallState::Ready | CallState::RetryWait, CallEvent::Due { .. }) if now >= call.deadline_at => {
            planner.deadline_passed()
        }
        (CallState::Ready, CallEvent::Due { republish, .. }) => planner.unclaimed(*republish),
        (CallState::RetryWait, CallEvent::Due { retry_allowed: true, .. }) => planner.publish(call.attempt),
        (CallState::RetryWait, CallEvent::Due { retry_allowed: false, .. }) => {
            Change::Postpone { wake_at: retry::postponed(&planner.policy, call.attempt, now, random) }
        }
        _ => return None,
    };
    Some(Transition { call: call.id, guard: guard(call), change })
}

/// The success of an attempt, planned without reading the call: it ends every call that still runs this attempt on
/// this worker, whatever else is on record.
pub fn succeeded(job: JobRef, worker: &WorkerId, duration_ms: u64, output: String) -> Transition {
    let guard = Guard {
        state: CallState::Running,
        attempt: job.attempt,
        worker: Some(worker.clone()),
        claim: None,
        cancel_requested: None,
    };
    Transition { call: job.call, guard, change: success(duration_ms, output) }
}

/// Everything that a decision may depend on.
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

/// What follows a failed attempt.
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
            Route::Retry | Route::Uncertain | Route::Bug if uncertain => Next::end(
                CallState::Unknown,
                failure.class,
                format!(
                    "{}; the tool is unsafe and may have done its work: an operator must inspect it",
                    failure.message
                ),
            ),
            Route::End if failure.class == ErrorClass::Cancelled && self.call.cancel_requested => {
                Next::end(CallState::Cancelled, ErrorClass::Cancelled, cancelled_while_running(failure))
            }
            Route::Retry | Route::Uncertain => self.retry_or_end(failure),
            Route::Feedback | Route::Operator | Route::End | Route::Bug => {
                Next::end(CallState::Failed, failure.class, failure.message.as_str())
            }
        }
    }

    fn retry_or_end(&self, failure: &Failure) -> Next {
        let (attempt, most) = (self.call.attempt, self.policy.max_attempts);
        if self.call.cancel_requested {
            return Next::end(CallState::Cancelled, ErrorClass::Cancelled, cancelled_while_running(failure));
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

    fn after_release(&self) -> Change {
        if self.call.cancel_requested {
            let stopped = Failure::new(ErrorClass::Cancelled, "released by its worker").without_effect();
            return self.after_failure(None, stopped);
        }
        self.publish(self.call.attempt.saturating_sub(1))
    }

    fn after_lease(&self, grace_until: Time) -> Change {
        let wake_at = self.call.lease_until.map_or(grace_until, |lease| lease.max(grace_until));
        if self.now < wake_at {
            return Change::Postpone { wake_at };
        }
        self.after_failure(None, Failure::new(ErrorClass::Lost, "the worker was lost: its lease expired"))
    }

    fn deadline_passed(&self) -> Change {
        let message = match self.call.attempt {
            0 => "no worker started it before the call's total deadline".to_owned(),
            n => format!("the call's total deadline passed after {n} attempts"),
        };
        ended(CallState::Failed, ErrorClass::BudgetExhausted, message)
    }

    fn unclaimed(&self, republish: Republish) -> Change {
        let published = self.call.publish_no.saturating_sub(self.call.attempt);
        let queued = match republish {
            Republish::Later => return Change::Postpone { wake_at: self.check_at(self.now + ms(publish::PAUSE_MS)) },
            Republish::IfOverdue => true,
            Republish::Now => false,
        };
        match publish::unclaimed(published, self.call.published_at, queued, self.now) {
            Unclaimed::Publish { check_at } => {
                Change::Publish { attempt: self.call.attempt, check_at: self.check_at(check_at) }
            }
            Unclaimed::Wait { check_at } => Change::Postpone { wake_at: self.check_at(check_at) },
        }
    }

    fn publish(&self, attempt: u32) -> Change {
        Change::Publish { attempt, check_at: self.check_at(self.now + ms(publish::FIRST_CHECK_MS)) }
    }

    /// When to look at a call that is ready: not later than its deadline.
    fn check_at(&self, at: Time) -> Time {
        at.min(self.call.deadline_at)
    }
}

fn success(duration_ms: u64, output: String) -> Change {
    let attempt = EndedAttempt { duration_ms: Some(duration_ms), result: Ok(output) };
    Change::End { state: CallState::Succeeded, failure: None, attempt: Some(attempt) }
}

/// The end of a call that ends without an attempt.
fn ended(state: CallState, class: ErrorClass, message: impl Into<String>) -> Change {
    Change::End { state, failure: Some(failure_of(state, class, message)), attempt: None }
}

/// On record, the failure of a call says by `effect_possible` whether it is unknown what the tool did.
fn failure_of(state: CallState, class: ErrorClass, message: impl Into<String>) -> Failure {
    let message = limits::shorten(&message.into(), limits::MAX_ERROR_MESSAGE);
    Failure { effect_possible: state == CallState::Unknown, ..Failure::new(class, message) }
}

fn cancelled_while_running(failure: &Failure) -> &'static str {
    if failure.effect_possible {
        "cancelled while it ran; the tool may have done its work"
    } else {
        "cancelled before the tool did its work"
    }
}
