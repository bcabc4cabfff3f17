//! One function for each invariant.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use redial_proto::{CallId, CallState, ToolEffect};
use uuid::Uuid;

use super::{
    claims::Claims,
    conversations,
    evidence::{AttemptFacts, CallFacts, Evidence},
    memory,
    violation::{Invariant, Subject, Violation},
    walls,
};
use crate::{Entry, ToolEvent};

/// What a rule finds wrong with a call.
type Finding = Option<(Invariant, String)>;

/// Returns every invariant that does not hold, by call.
pub fn check(evidence: &Evidence, claims: &Claims) -> Vec<Violation> {
    let mut entries: HashMap<CallId, Vec<&Entry>> = HashMap::new();
    for entry in &claims.tool_events {
        entries.entry(entry.call).or_default().push(entry);
    }
    let none = Vec::new();
    let mut violations = broken_guarantees(evidence, claims, &entries);
    // Tools that record what they do in the ledger.
    let recorded: HashSet<&str> = entries.keys().filter_map(|id| Some(evidence.calls.get(id)?.tool.as_str())).collect();
    for call in evidence.calls.values() {
        let entries = entries.get(&call.id).unwrap_or(&none);
        let findings = [
            lives(call, claims),
            gaps(call),
            too_many_attempts(call),
            more_than_one_outcome(call),
            success_without_output(call),
            effects_beyond_attempts(call, entries),
            success_without_effect(call, entries, &recorded),
            more_than_one_key(entries),
            unsafe_twice(call, entries),
            overlapping_leases(call),
            too_early(call),
            overlapping_executions(call, entries, claims),
            wasted_attempts(call, entries, claims),
        ];
        let found = findings.into_iter().flatten();
        violations.extend(found.map(|(invariant, found)| Violation {
            invariant,
            about: Subject::Call(call.id),
            found,
        }));
    }
    violations.extend(conversations::check(&evidence.tasks, claims));
    violations.extend(memory::check(evidence));
    violations.extend(walls::check(&evidence.strays, &claims.heard));
    violations.sort_by_key(|violation| (violation.invariant, violation.about));
    violations
}

/// Returns what users received and the tables contradict.
fn broken_guarantees(evidence: &Evidence, claims: &Claims, entries: &HashMap<CallId, Vec<&Entry>>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut add = |invariant, call, found| violations.push(Violation { invariant, about: Subject::Call(call), found });
    for (id, key) in &claims.acknowledged {
        match evidence.calls.get(id) {
            None => add(Invariant::AcknowledgedExists, *id, "was acknowledged and is not on record".to_owned()),
            Some(call) if call.key != *key => {
                let found = format!("was acknowledged under key {key:?} and is on record under {:?}", call.key);
                add(Invariant::AcknowledgedExists, *id, found);
            }
            Some(_) => {}
        }
    }
    let keys: HashSet<&str> = evidence.calls.values().filter_map(|call| call.key.as_deref()).collect();
    for key in claims.intake_keys.iter().filter(|key| !keys.contains(key.as_str())) {
        let found = format!("key {key:?} was acknowledged by the intake stream and is not on record");
        violations.push(Violation { invariant: Invariant::AcknowledgedExists, about: Subject::Submission, found });
    }
    let mut add = |invariant, call, found| violations.push(Violation { invariant, about: Subject::Call(call), found });
    for (id, when) in &claims.cancelled {
        let attempts = || evidence.calls.get(id).into_iter().flat_map(|call| &call.attempts);
        for late in attempts().filter(|attempt| attempt.started_at > *when) {
            let found = format!("attempt {} started at {}, cancelled at {when}", late.attempt, late.started_at);
            add(Invariant::NothingAfterCancel, *id, found);
        }
        let started = entries.get(id).into_iter().flatten().filter(|e| e.event == ToolEvent::Started && e.at > *when);
        for late in started.filter(|e| !attempts().any(|attempt| was_under_way(attempt, e, *when))) {
            let found = format!("the tool began attempt {} at {}, cancelled at {when}", late.attempt, late.at);
            add(Invariant::NothingAfterCancel, *id, found);
        }
    }
    violations
}

/// True if the cancel found the attempt running, and was answered so: its grant was on the way to the worker, which can
/// be asked to stop only after that. Once the attempt has ended on record, nothing of it may start.
fn was_under_way(attempt: &AttemptFacts, start: &Entry, cancelled: DateTime<Utc>) -> bool {
    attempt.attempt == start.attempt && attempt.started_at <= cancelled && attempt.ended_at >= start.at
}

fn lives(call: &CallFacts, claims: &Claims) -> Finding {
    let wrong = !call.state.is_terminal() && !claims.calls_may_live;
    wrong.then(|| (Invariant::EveryCallEnds, format!("is {} after {} attempts", call.state, call.attempt)))
}

fn gaps(call: &CallFacts) -> Finding {
    let numbers: Vec<u32> = call.attempts.iter().map(|attempt| attempt.attempt).collect();
    // The current attempt of a running call has no row yet.
    let ended = if call.state == CallState::Running { call.attempt.saturating_sub(1) } else { call.attempt };
    let wanted: Vec<u32> = (1..=ended).collect();
    (numbers != wanted).then(|| {
        (Invariant::AttemptsWithoutGaps, format!("{} attempts started, on record are {numbers:?}", call.attempt))
    })
}

fn too_many_attempts(call: &CallFacts) -> Finding {
    (call.attempt > call.max_attempts)
        .then(|| (Invariant::AttemptsWithinMax, format!("{} attempts, allowed: {}", call.attempt, call.max_attempts)))
}

fn more_than_one_outcome(call: &CallFacts) -> Finding {
    let wrong = |found: String| Some((Invariant::OneOutcome, found));
    if call.state.is_terminal() != call.finished_at.is_some() {
        return wrong(format!("is {} and finished at {:?}", call.state, call.finished_at));
    }
    let failed = call.state.is_terminal() && call.state != CallState::Succeeded;
    if failed != call.class.is_some() {
        return wrong(format!("is {} with class {:?}", call.state, call.class));
    }
    let successes = call.attempts.iter().filter(|attempt| attempt.class.is_none());
    let successes: Vec<u32> = successes.map(|attempt| attempt.attempt).collect();
    let wanted = if call.state == CallState::Succeeded { vec![call.attempt] } else { Vec::new() };
    if successes == wanted { None } else { wrong(format!("is {}; attempts {successes:?} succeeded", call.state)) }
}

fn success_without_output(call: &CallFacts) -> Finding {
    let outputs = call.attempts.iter().filter(|attempt| attempt.has_output).count();
    let wanted = usize::from(call.state == CallState::Succeeded);
    (outputs != wanted).then(|| (Invariant::SuccessHasOutput, format!("is {} with {outputs} outputs", call.state)))
}

/// Finds effects beyond the attempts. An execution that its own worker stopped is left out: a tool that may run twice
/// is then released, and runs again under the same number.
fn effects_beyond_attempts(call: &CallFacts, entries: &[&Entry]) -> Finding {
    let stopped: HashSet<Uuid> =
        entries.iter().filter(|entry| entry.event == ToolEvent::Stopped).map(|entry| entry.execution).collect();
    let mut seen = HashSet::new();
    let effects =
        entries.iter().filter(|entry| entry.event == ToolEvent::Effect && !stopped.contains(&entry.execution));
    let mut wrong = effects.filter(|entry| !(1..=call.attempt).contains(&entry.attempt) || !seen.insert(entry.attempt));
    wrong.next().map(|entry| {
        let found = format!("{} attempts on record, one more effect in attempt {}", call.attempt, entry.attempt);
        (Invariant::EffectsWithinAttempts, found)
    })
}

fn success_without_effect(call: &CallFacts, entries: &[&Entry], recorded: &HashSet<&str>) -> Finding {
    let done = || entries.iter().any(|entry| entry.event == ToolEvent::Effect && entry.attempt == call.attempt);
    (call.state == CallState::Succeeded && recorded.contains(call.tool.as_str()) && !done()).then(|| {
        let found = format!("attempt {} succeeded, and the tool {} did nothing in it", call.attempt, call.tool);
        (Invariant::EffectsWithinAttempts, found)
    })
}

fn more_than_one_key(entries: &[&Entry]) -> Finding {
    let keys: HashSet<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    (keys.len() > 1).then(|| (Invariant::OneKey, format!("its attempts carried the keys {keys:?}")))
}

fn unsafe_twice(call: &CallFacts, entries: &[&Entry]) -> Finding {
    let effects = entries.iter().filter(|entry| entry.event == ToolEvent::Effect).count();
    (call.effect == ToolEffect::Unsafe && effects > 1)
        .then(|| (Invariant::UnsafeOnce, format!("the unsafe tool {} had its effect {effects} times", call.tool)))
}

fn overlapping_leases(call: &CallFacts) -> Finding {
    let backwards = call.attempts.iter().find(|attempt| attempt.ended_at < attempt.started_at);
    let overlap = call.attempts.windows(2).find(|pair| pair[1].started_at < pair[0].ended_at).map(|pair| &pair[1]);
    backwards.or(overlap).map(|attempt| {
        let found = format!("attempt {} of {} starts before what came earlier ended", attempt.attempt, attempt.worker);
        (Invariant::LeasesApart, found)
    })
}

fn too_early(call: &CallFacts) -> Finding {
    let early = |pair: &&[AttemptFacts]| pair[0].retry_at.is_some_and(|due| pair[1].started_at < due);
    call.attempts.windows(2).find(early).map(|pair| {
        let found = format!("attempt {} started at {}, before its time", pair[1].attempt, pair[1].started_at);
        (Invariant::RetriesWhenDue, found)
    })
}

/// Finds executions that overlap. Those whose process was killed have no end in the ledger, and are left out; so are
/// those of a process that stood still.
fn overlapping_executions(call: &CallFacts, entries: &[&Entry], claims: &Claims) -> Finding {
    let paused = |number: u32| {
        let mut attempts = call.attempts.iter().filter(|attempt| attempt.attempt == number);
        attempts.any(|attempt| claims.paused.contains(&attempt.worker))
    };
    let end = |start: &Entry| {
        let mut ends = entries.iter().filter(|entry| matches!(entry.event, ToolEvent::Ended | ToolEvent::Stopped));
        ends.find(|entry| entry.execution == start.execution).map(|entry| entry.at)
    };
    let starts = entries.iter().filter(|entry| entry.event == ToolEvent::Started && !paused(entry.attempt));
    let mut spans: Vec<_> = starts.filter_map(|start| Some((start.at, end(start)?, start.attempt))).collect();
    spans.sort_unstable();
    spans.windows(2).find(|pair| pair[1].0 < pair[0].1).map(|pair| {
        let found = format!("attempt {} began to run before attempt {} had ended", pair[1].2, pair[0].2);
        (Invariant::LeasesApart, found)
    })
}

fn wasted_attempts(call: &CallFacts, entries: &[&Entry], claims: &Claims) -> Finding {
    let is_unsafe = call.effect == ToolEffect::Unsafe;
    let stopped = |number| entries.iter().any(|entry| entry.event == ToolEvent::Stopped && entry.attempt == number);
    let may_be_lost = |attempt: &&AttemptFacts| {
        claims.disturbed.iter().any(|disturbance| disturbance.touches(attempt)) || is_unsafe && stopped(attempt.attempt)
    };
    let mut lost = call.attempts.iter().filter(|attempt| attempt.class.as_deref() == Some("lost"));
    lost.find(|attempt| !may_be_lost(attempt)).map(|attempt| {
        let AttemptFacts { attempt, worker, started_at, ended_at, .. } = attempt;
        let found =
            format!("attempt {attempt} of {worker} was lost, and that worker did not die ({started_at} to {ended_at})");
        (Invariant::NoAttemptLostToOutage, found)
    })
}
