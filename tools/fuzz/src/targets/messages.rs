//! Messages on the wire: what dispatchers and workers read of each other and of users.

use redial_arguments::Schema;
use redial_engine::feedback::check_templates;
use redial_proto::{
    AgentRef, AgentSpec, CancelRequest, ClaimReply, ClaimRequest, ControlMessage, Delta, Heartbeat, HeartbeatReply,
    Job, Registration, ReleaseRequest, Report, ReportBatch, Submission, SubmitBatch, TaskSubmission, TurnReply,
    TurnRequest, limits,
};
use serde::{Serialize, de::DeserializeOwned};

use super::target::{Target, texts};
use crate::corpus;

/// Messages on the stream of jobs.
pub(super) const JOB: Target =
    Target { name: "job", weight: 200, corpus: || texts(&corpus::JOBS), decoder: || Box::new(read::<Job>) };

/// Messages on the stream of results.
pub(super) const RESULT: Target =
    Target { name: "result", weight: 240, corpus: || texts(&corpus::RESULTS), decoder: || Box::new(result) };

/// Requests of workers (claim, heartbeat, release) and of users (cancel).
pub(super) const CONTROL: Target = Target {
    name: "claim, heartbeat, release",
    weight: 240,
    corpus: || texts(&corpus::CONTROL),
    decoder: || Box::new(control),
};

/// Submitted calls, single and in batches.
pub(super) const SUBMISSION: Target = Target {
    name: "submission",
    weight: 240,
    corpus: || texts(&corpus::SUBMISSIONS),
    decoder: || Box::new(submission),
};

/// Submitted tasks.
pub(super) const TASK: Target =
    Target { name: "task submission", weight: 160, corpus: || texts(&corpus::TASKS), decoder: || Box::new(task) };

/// A model's turn, as it travels between dispatcher and worker.
pub(super) const TURN: Target =
    Target { name: "turn", weight: 120, corpus: || texts(&corpus::TURNS), decoder: || Box::new(turn) };

/// Replies and notices of dispatchers to workers.
pub(super) const TO_WORKERS: Target = Target {
    name: "grants, notices",
    weight: 120,
    corpus: || texts(&corpus::TO_WORKERS),
    decoder: || Box::new(to_worker),
};

/// The tools that a worker registers.
pub(super) const REGISTRATION: Target = Target {
    name: "registration",
    weight: 40,
    corpus: || texts(&corpus::REGISTRATIONS),
    decoder: || Box::new(registration),
};

/// What is read can be written, and read again.
fn reread<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let document: T = serde_json::from_slice(bytes).ok()?;
    let written = serde_json::to_vec(&document).unwrap_or_else(|error| panic!("it cannot be written: {error}"));
    let again = serde_json::from_slice::<T>(&written);
    assert!(again.is_ok(), "it cannot be read again: {}", String::from_utf8_lossy(&written));
    Some(document)
}

fn read<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> bool {
    reread::<T>(bytes).is_some()
}

fn result(bytes: &[u8]) -> bool {
    let Some(batch) = reread::<ReportBatch>(bytes) else { return false };
    let depth = |report: &Report| report.output.as_ref().map(|output| limits::json_depth(output.get()));
    let reports = batch.reports.iter().filter_map(|raw| reread::<Report>(raw.get().as_bytes()));
    reports.filter(|report| depth(report) < Some(limits::MAX_DEPTH)).all(|report| report.outcome().is_ok())
}

fn control(bytes: &[u8]) -> bool {
    read::<ClaimRequest>(bytes)
        | read::<Heartbeat>(bytes)
        | read::<ReleaseRequest>(bytes)
        | read::<CancelRequest>(bytes)
}

fn submission(bytes: &[u8]) -> bool {
    match reread::<SubmitBatch>(bytes) {
        Some(batch) => batch.calls.iter().filter(|call| read::<Submission>(call.get().as_bytes())).count() > 0,
        None => read::<Submission>(bytes),
    }
}

fn task(bytes: &[u8]) -> bool {
    match reread::<TaskSubmission>(bytes) {
        Some(TaskSubmission { agent: AgentRef::Inline(agent), .. }) => good(&agent),
        Some(_) => true,
        None => reread::<AgentSpec>(bytes).is_some_and(|agent| good(&agent)),
    }
}

/// True if an agent is good; otherwise the error must have a message. Patterns of any form are matched.
pub(super) fn good(agent: &AgentSpec) -> bool {
    let checked = agent.check().and_then(|()| check_templates(&agent.templates));
    agent.offers("get_weather");
    assert!(checked.as_ref().err().is_none_or(|error| !error.is_empty()), "an error without a message");
    checked.is_ok()
}

fn turn(bytes: &[u8]) -> bool {
    read::<TurnRequest>(bytes) | read::<TurnReply>(bytes) | read::<Delta>(bytes)
}

fn to_worker(bytes: &[u8]) -> bool {
    read::<ClaimReply>(bytes) | read::<HeartbeatReply>(bytes) | read::<ControlMessage>(bytes)
}

fn registration(bytes: &[u8]) -> bool {
    let Some(registration) = reread::<Registration>(bytes) else { return false };
    let good = |tool: &redial_proto::ToolSpec| tool.check().is_ok() && Schema::compile(&tool.parameters).is_ok();
    registration.tools.iter().all(good)
}
