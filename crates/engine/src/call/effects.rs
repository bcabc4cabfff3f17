//! What has to be done once a transition of a call is on record.

use redial_proto::{ErrorClass, GrantRef, Job};
use redial_records::{Backlog, BacklogPart, CallFacts, Change, Effect, EndedAttempt, NewCall, OutgoingJob, Transition};

/// Returns the effects of a committed transition, in the order in which they are to be carried out.
pub fn effects(transition: &Transition, facts: &CallFacts) -> Vec<Effect> {
    match &transition.change {
        Change::Wait { backlog, .. } => {
            let part = BacklogPart { tool: facts.tool.clone(), tenant: facts.tenant.clone(), backlog: *backlog };
            let since = (*backlog == Backlog::Job).then_some(facts.submitted_at);
            vec![Effect::WakeFeeder { part, since }]
        }
        Change::Postpone { .. } | Change::Extend { .. } => Vec::new(),
        Change::RequestCancel => stop_worker(facts).into_iter().collect(),
        Change::Retry { attempt, .. } => {
            let stopped = overdue(attempt).then(|| stop_worker(facts)).flatten();
            facts.task.map(Effect::WakeTask).into_iter().chain([Effect::WakeSweeper]).chain(stopped).collect()
        }
        Change::Answer { .. } => {
            let notice = facts.notify.then_some(Effect::NotifySubmitter(facts.call));
            facts.task.map(Effect::WakeTask).into_iter().chain(notice).collect()
        }
        Change::End { attempt, .. } => {
            let stopped = attempt.as_ref().is_some_and(overdue).then(|| stop_worker(facts)).flatten();
            let notice = facts.notify.then_some(Effect::NotifySubmitter(facts.call));
            facts.task.map(Effect::WakeTask).into_iter().chain(notice).chain(stopped).collect()
        }
    }
}

/// True if a dispatcher ended the attempt, because its worker did not: the worker may still run it.
fn overdue(attempt: &EndedAttempt) -> bool {
    attempt.duration_ms.is_none() && matches!(&attempt.result, Err(failure) if failure.class == ErrorClass::Timeout)
}

fn stop_worker(facts: &CallFacts) -> Option<Effect> {
    let grant = GrantRef { call: facts.call, attempt: facts.attempt, claim: facts.claim? };
    facts.worker.clone().map(|worker| Effect::StopWorker { worker, grant })
}

/// Returns the effects of writing a new call: its job is published if a consumer was chosen for it. A refused one never
/// runs, and one that its client serves has no job: the step of its task tells the client.
pub fn submitted(call: &NewCall) -> Vec<Effect> {
    if call.refusal.is_some() || call.is_of_client() {
        return Vec::new();
    }
    let Some(consumer) = call.consumer.clone() else {
        let tenant = call.tenant.clone();
        let part = BacklogPart { tool: call.tool.clone(), tenant, backlog: Backlog::Job };
        return vec![Effect::WakeFeeder { part, since: None }];
    };
    let bytes = call.bytes();
    vec![Effect::PublishJob(OutgoingJob {
        job: Job { call: call.id, attempt: 1, tool: call.tool.clone(), bytes },
        consumer,
        publish_no: 1,
        traceparent: call.traceparent.clone(),
    })]
}
