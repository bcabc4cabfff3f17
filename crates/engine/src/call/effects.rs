//! What has to be done once a transition of a call is on record.

use redial_proto::{CallView, Job, JobRef};
use redial_records::{CallFacts, Change, Effect, EndedAttempt, NewCall, OutgoingJob, Transition};
use serde_json::value::RawValue;

/// The effects of a committed transition, in the order in which they are to be carried out.
pub fn effects(transition: &Transition, facts: &CallFacts) -> Vec<Effect> {
    match &transition.change {
        Change::Publish { .. } => vec![Effect::PublishJob(next_job(facts))],
        Change::Postpone { .. } => Vec::new(),
        Change::RequestCancel => {
            let attempt = JobRef { call: facts.call, attempt: facts.attempt };
            facts.worker.iter().map(|worker| Effect::StopWorker { worker: worker.clone(), attempt }).collect()
        }
        Change::Retry { .. } => facts.task.map(Effect::WakeTask).into_iter().chain([Effect::WakeSweeper]).collect(),
        Change::End { .. } => {
            let notice = facts.notify.then(|| Effect::NotifySubmitter(Box::new(ended_view(transition, facts))));
            facts.task.map(Effect::WakeTask).into_iter().chain(notice).collect()
        }
    }
}

/// The effects of writing a new call. A refused one never runs.
pub fn submitted(call: &NewCall) -> Vec<Effect> {
    if call.refusal.is_some() {
        return Vec::new();
    }
    let bytes = u32::try_from(call.arguments.len()).unwrap_or(u32::MAX);
    vec![Effect::PublishJob(OutgoingJob {
        job: Job { call: call.id, attempt: 1, tool: call.tool.clone(), bytes },
        pool: call.pool.clone(),
        publish_no: 1,
        traceparent: call.traceparent.clone(),
    })]
}

fn next_job(facts: &CallFacts) -> OutgoingJob {
    let tool = facts.tool.clone();
    OutgoingJob {
        job: Job { call: facts.call, attempt: facts.attempt + 1, tool, bytes: facts.bytes },
        pool: facts.pool.clone(),
        publish_no: facts.publish_no,
        traceparent: facts.traceparent.clone(),
    }
}

fn ended_view(transition: &Transition, facts: &CallFacts) -> CallView {
    let (failure, attempt) = match &transition.change {
        Change::End { failure, attempt, .. } => (failure.as_ref(), attempt.as_ref()),
        _ => (None, None),
    };
    let output = attempt.and_then(|EndedAttempt { result, .. }| result.as_ref().ok());
    CallView {
        call: facts.call,
        tool: facts.tool.clone(),
        state: transition.state(),
        attempts: facts.attempt,
        submitted_at: facts.submitted_at,
        next_attempt_at: None,
        finished_at: Some(facts.at),
        output: output.and_then(|output| RawValue::from_string(output.clone()).ok()),
        class: failure.map(|failure| failure.class),
        message: failure.map(|failure| failure.message.clone()),
    }
}
