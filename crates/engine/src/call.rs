//! The state machine of a call.

use redial_proto::{CallState, Effect, ErrorClass, Failure, RetryPolicy, limits};

use crate::{Route, Time, retry, route};

/// What the decisions need to know of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Where it stands.
    pub state: CallState,
    /// Attempts started so far; while `running`, the number of the current one.
    pub attempt: u32,
    /// What running the tool does to the world.
    pub effect: Effect,
    /// When and how often to retry.
    pub retry: RetryPolicy,
    /// No attempt starts after this.
    pub deadline_at: Time,
    /// Until when the current attempt's lease holds, while `running`.
    pub lease_until: Option<Time>,
    /// The user asked to stop it while it was running.
    pub cancel_requested: bool,
}

/// What can happen to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// A worker asks for the attempt with this number.
    Claim {
        /// From the job; must be the next one.
        attempt: u32,
    },
    /// The worker reports a result.
    Succeeded,
    /// The worker reports an error.
    Failed(&'a Failure),
    /// The worker gives the attempt back; it does not count.
    Released,
    /// Its time has come: a retry is due, a lease may be over, a job may be lost, the deadline may have passed.
    Woken {
        /// Whether the tool's retry budget has a token for this call.
        retry_allowed: bool,
        /// No lease is taken for expired before this: after an outage workers need time to renew.
        grace_until: Time,
    },
    /// The user wants it stopped.
    Cancel,
}

/// What comes next. The dispatcher stores it, then acts on it, in one `match` each.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Nothing changes: the event is late, or has nothing to say.
    Unchanged,
    /// A worker has it now.
    Running,
    /// Still running, but its lease is alive: look again then.
    StillRunning {
        /// The end of the lease.
        until: Time,
    },
    /// Still running; its worker has to be told to stop.
    StopWorker,
    /// Wants an attempt now: publish a job.
    Ready,
    /// Nobody has claimed it yet: see [`crate::publish::unclaimed`].
    Unclaimed,
    /// Wants an attempt later.
    RetryWait {
        /// When the next attempt is due.
        until: Time,
    },
    /// Over.
    Ended {
        /// A terminal state.
        state: CallState,
        /// Why, unless it succeeded.
        why: Option<Ending>,
    },
}

/// Why a call ended without success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The class that the audit can be searched by.
    pub class: ErrorClass,
    /// The same in words.
    pub message: String,
}

/// A decision: what comes next, and how the current attempt ended if it did.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What comes next.
    pub next: Next,
    /// The attempt that this ends, for the audit: `None` inside means success.
    pub ended_attempt: Option<Option<Failure>>,
}

impl Step {
    fn only(next: Next) -> Self {
        Self { next, ended_attempt: None }
    }
}

/// Decides what an event does to a call. `random` is in `[0, 1)` and spreads retries.
///
/// An event that does not fit the state is late or a duplicate: it changes nothing. A success needs no knowledge of
/// the call beyond "still running": [`Event::Succeeded`] ends every running call the same way.
pub fn step(call: &Call, event: &Event<'_>, now: Time, random: f64) -> Step {
    match (call.state, event) {
        (CallState::Ready, Event::Claim { attempt }) if *attempt == call.attempt + 1 && now < call.deadline_at => {
            Step::only(Next::Running)
        }
        (CallState::Running, Event::Succeeded) => {
            Step { next: Next::Ended { state: CallState::Succeeded, why: None }, ended_attempt: Some(None) }
        }
        (CallState::Running, Event::Failed(failure)) => {
            Step { next: after_failure(call, failure, now, random), ended_attempt: Some(Some((*failure).clone())) }
        }
        (CallState::Running, Event::Released) if call.cancel_requested => {
            let stopped = Failure::new(ErrorClass::Cancelled, "given back by its worker").without_effect();
            step(call, &Event::Failed(&stopped), now, random)
        }
        (CallState::Running, Event::Cancel) => Step::only(Next::StopWorker),
        (CallState::Running, Event::Woken { grace_until, .. }) => after_lease(call, *grace_until, now, random),
        (CallState::Ready | CallState::RetryWait, Event::Cancel) => {
            Step::only(ended(CallState::Cancelled, ErrorClass::Cancelled, "cancelled before an attempt started"))
        }
        (CallState::Ready | CallState::RetryWait, Event::Woken { .. }) if now >= call.deadline_at => {
            Step::only(deadline_passed(call))
        }
        (CallState::Ready, Event::Woken { .. }) => Step::only(Next::Unclaimed),
        (CallState::Running, Event::Released) | (CallState::RetryWait, Event::Woken { retry_allowed: true, .. }) => {
            Step::only(Next::Ready)
        }
        (CallState::RetryWait, Event::Woken { retry_allowed: false, .. }) => {
            Step::only(Next::RetryWait { until: retry::postponed(&call.retry, call.attempt, now, random) })
        }
        _ => Step::only(Next::Unchanged),
    }
}

fn after_failure(call: &Call, failure: &Failure, now: Time, random: f64) -> Next {
    let uncertain = call.effect == Effect::Unsafe && failure.effect_possible;
    match route(failure.class) {
        Route::Retry | Route::Uncertain | Route::Bug if uncertain => ended(
            CallState::Unknown,
            failure.class,
            format!("{}; the tool is unsafe and may have done its work: somebody has to look", failure.message),
        ),
        Route::End if failure.class == ErrorClass::Cancelled && call.cancel_requested => {
            ended(CallState::Cancelled, ErrorClass::Cancelled, cancelled_while_running(failure))
        }
        Route::Retry | Route::Uncertain => retry_or_end(call, failure, now, random),
        Route::Feedback | Route::Operator | Route::End | Route::Bug => {
            ended(CallState::Failed, failure.class, failure.message.clone())
        }
    }
}

fn cancelled_while_running(failure: &Failure) -> &'static str {
    if failure.effect_possible {
        "cancelled while it ran; the tool may have done its work"
    } else {
        "cancelled before the tool did its work"
    }
}

fn retry_or_end(call: &Call, failure: &Failure, now: Time, random: f64) -> Next {
    if call.cancel_requested {
        return ended(CallState::Cancelled, ErrorClass::Cancelled, cancelled_while_running(failure));
    }
    if call.attempt >= call.retry.max_attempts {
        let message = format!("{} (attempt {} of {})", failure.message, call.attempt, call.retry.max_attempts);
        return ended(CallState::Failed, failure.class, message);
    }
    let until = retry::due(&call.retry, call.attempt, failure.retry_after_ms, now, random);
    if until >= call.deadline_at {
        let message = format!("{} (the next attempt would be due after the call's total deadline)", failure.message);
        return ended(CallState::Failed, failure.class, message);
    }
    Next::RetryWait { until }
}

fn after_lease(call: &Call, grace_until: Time, now: Time, random: f64) -> Step {
    let until = call.lease_until.map_or(grace_until, |lease| lease.max(grace_until));
    if now < until {
        return Step::only(Next::StillRunning { until });
    }
    let lost = Failure::new(ErrorClass::Lost, "the worker went away: its lease expired");
    step(call, &Event::Failed(&lost), now, random)
}

fn deadline_passed(call: &Call) -> Next {
    let message = match call.attempt {
        0 => "no worker started it before the call's total deadline".to_owned(),
        n => format!("the call's total deadline passed after {n} attempts"),
    };
    ended(CallState::Failed, ErrorClass::BudgetExhausted, message)
}

fn ended(state: CallState, class: ErrorClass, message: impl Into<String>) -> Next {
    let message = limits::shorten(&message.into(), limits::MAX_ERROR_MESSAGE);
    Next::Ended { state, why: Some(Ending { class, message }) }
}

/// May an ended call run again, as a new call? Says why not.
pub fn redrive(state: CallState) -> Result<(), String> {
    match state {
        CallState::Failed | CallState::Cancelled | CallState::Unknown => Ok(()),
        CallState::Ready | CallState::Running | CallState::RetryWait => {
            Err(format!("the call is {state}; only ended calls can be redriven, cancel it first"))
        }
        CallState::Succeeded => Err("the call succeeded; submit it again if you want it twice".to_owned()),
        CallState::Refused => Err("the call was refused and would be again; submit it corrected".to_owned()),
    }
}
