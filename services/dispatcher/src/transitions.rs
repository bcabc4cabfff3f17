//! Plans and writes transitions of calls; counts those that happened, and returns their effects.

use std::{collections::HashMap, time::Duration};

use redial_engine::{
    call::{self, CallEvent},
    tools::retry_policy,
};
use redial_proto::{ApiError, CallId, CallState, ClaimId, Code, ErrorClass};
use redial_records::{CallFacts, CallRecord, Change, Effect, EndedAttempt, Transition};
use redial_store::{Applied, StoreError};
use redial_telemetry::{metrics, names};

use crate::{
    context::Context,
    error::{call_not_found, store_failed},
};

/// A call may change between the read and the write: then its event is planned again. A few times at most, because a
/// call has few states to go through.
pub(crate) const MAX_TRIES: usize = 10;

/// Plans what an event does to a call; `None` if nothing.
pub(crate) fn plan(context: &Context, call: &CallRecord, event: &CallEvent<'_>) -> Option<Transition> {
    let policy = retry_policy(&context.registry.tools(), &call.tool);
    call::plan(call, &policy, event, call.read_at, rand::random())
}

/// Writes transitions; returns what those that happened left on record, and their effects.
pub(crate) async fn write(
    context: &Context,
    transitions: &[Transition],
) -> Result<(Vec<CallFacts>, Vec<Effect>), StoreError> {
    let facts = context.store.apply(transitions).await?;
    let effects = committed(context, transitions, &facts);
    Ok((facts, effects))
}

/// Writes transitions, but for calls that another transaction holds locked: those are returned, too.
pub(crate) async fn write_unlocked(
    context: &Context,
    transitions: &[Transition],
) -> Result<(Applied, Vec<Effect>), StoreError> {
    let applied = context.store.apply_unlocked(transitions).await?;
    let effects = committed(context, transitions, &applied.facts);
    Ok((applied, effects))
}

/// Counts committed transitions, and returns their effects.
pub(crate) fn committed(context: &Context, transitions: &[Transition], facts: &[CallFacts]) -> Vec<Effect> {
    // Reports of one attempt under several claims are several transitions of one call: one of them has happened.
    let by_claim: HashMap<(CallId, Option<ClaimId>), &Transition> =
        transitions.iter().map(|one| ((one.call, one.guard.claim), one)).collect();
    let transition = |facts: &CallFacts| {
        by_claim.get(&(facts.call, facts.claim)).or_else(|| by_claim.get(&(facts.call, None))).copied()
    };
    let happened = facts.iter().filter_map(|facts| Some((transition(facts)?, facts)));
    let mut effects = Vec::new();
    for (transition, facts) in happened {
        count(context, transition, facts);
        effects.extend(call::effects(transition, facts));
    }
    effects
}

pub(crate) struct Cancelled {
    pub(crate) state: CallState,
    /// Whether it would have gone on.
    pub(crate) changed: bool,
    pub(crate) effects: Vec<Effect>,
}

pub(crate) async fn cancel(context: &Context, call: CallId) -> Result<Cancelled, ApiError> {
    for _ in 0..MAX_TRIES {
        let record = context.store.load(&[call]).await.map_err(|error| store_failed(&error))?.pop();
        let record = record.ok_or_else(|| call_not_found(call))?;
        let Some(transition) = plan(context, &record, &CallEvent::Cancel) else {
            return Ok(Cancelled { state: record.state, changed: false, effects: Vec::new() });
        };
        let state = transition.state();
        let (facts, effects) = write(context, &[transition]).await.map_err(|error| store_failed(&error))?;
        if !facts.is_empty() {
            return Ok(Cancelled { state, changed: !record.cancel_requested, effects });
        }
    }
    Err(ApiError::new(Code::Unavailable, "the call changes too fast to be cancelled now; try again"))
}

/// Cancels calls as far as they are as they were read; returns how many it changed, and the effects. The others are to be asked for
/// again.
pub(crate) async fn cancel_all(context: &Context, calls: &[CallId]) -> Result<(usize, Vec<Effect>), StoreError> {
    let records = context.store.load(calls).await?;
    let transitions: Vec<Transition> =
        records.iter().filter_map(|record| plan(context, record, &CallEvent::Cancel)).collect();
    let (facts, effects) = write(context, &transitions).await?;
    Ok((facts.len(), effects))
}

fn count(context: &Context, transition: &Transition, facts: &CallFacts) {
    if transition.guard.state == CallState::ClientWait {
        return count_function(transition);
    }
    if let Some(attempt) = transition.ended_attempt() {
        count_attempt(context, attempt, facts, matches!(transition.change, Change::Retry { .. }));
    }
    if matches!(transition.change, Change::Wait { .. }) && transition.guard.state == CallState::Ready {
        metrics().jobs_requeued(1);
    }
    if let Change::End { state, failure, .. } = &transition.change {
        let class = failure.as_ref().map(|failure| failure.class.as_str());
        metrics().call_finished(&facts.tool, state.as_str(), class);
    }
}

/// Counts a function apart: nothing is learned of the health of a tool that may have the same name.
fn count_function(transition: &Transition) {
    let class = match &transition.change {
        Change::Answer { attempt, .. } => attempt.result.as_ref().err(),
        Change::End { failure, .. } => failure.as_ref(),
        _ => return,
    };
    let class = class.map(|failure| failure.class.as_str());
    metrics().call_finished(names::CLIENT_FUNCTION, transition.state().as_str(), class);
}

fn count_attempt(context: &Context, attempt: &EndedAttempt, facts: &CallFacts, retried: bool) {
    let class = attempt.result.as_ref().err().map(|failure| failure.class);
    let duration = Duration::from_millis(attempt.duration_ms.unwrap_or(0));
    metrics().attempt_finished(&facts.tool, class.map(ErrorClass::as_str), duration);
    context.feeder.count(&facts.tool, class);
    if let Some(class) = class.filter(|_| retried) {
        metrics().retry_scheduled(&facts.tool, class.as_str());
    }
    // No worker reported it.
    if class == Some(ErrorClass::Lost) && attempt.duration_ms.is_none() {
        metrics().leases_expired(1);
    }
}
