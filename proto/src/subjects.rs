//! Names on NATS: subjects, streams, headers. `docs/PROTOCOL.md` says who may use which.

use std::time::Duration;

use crate::{CallId, TaskId, WorkerId, tool::check_name};

/// Request: a [`crate::Submission`] or a [`crate::SubmitBatch`].
pub const SUBMIT: &str = "redial.api.calls.submit";
/// Request: a [`crate::GetRequest`].
pub const GET: &str = "redial.api.calls.get";
/// Request: a [`crate::CancelRequest`].
pub const CANCEL: &str = "redial.api.calls.cancel";
/// Request: a [`crate::RedriveRequest`].
pub const REDRIVE: &str = "redial.api.calls.redrive";
/// Request: a [`crate::ForgetTool`].
pub const FORGET_TOOL: &str = "redial.api.tools.forget";
/// Request: a [`crate::Forget`].
pub const FORGET: &str = "redial.api.conversations.forget";
/// Intake stream, without a reply: same bodies as [`SUBMIT`].
pub const INTAKE: &str = "redial.intake.calls";
/// Request: a [`crate::TaskSubmission`].
pub const TASK_SUBMIT: &str = "redial.api.tasks.submit";
/// Request: a [`crate::TaskGet`].
pub const TASK_GET: &str = "redial.api.tasks.get";
/// Request: a [`crate::TaskCancel`].
pub const TASK_CANCEL: &str = "redial.api.tasks.cancel";
/// Intake stream, without a reply: same bodies as [`TASK_SUBMIT`].
pub const TASK_INTAKE: &str = "redial.intake.tasks";

/// Request: a [`crate::ClaimRequest`].
pub const CLAIM: &str = "redial.ctl.claim";
/// Request: a [`crate::Heartbeat`].
pub const HEARTBEAT: &str = "redial.ctl.heartbeat";
/// Request: a [`crate::ReleaseRequest`].
pub const RELEASE: &str = "redial.ctl.release";
/// Request: a [`crate::Registration`].
pub const REGISTER: &str = "redial.ctl.register";
/// Publication: "a worker registered, or a tool was forgotten: look again"; no body.
pub const TOOLS_CHANGED: &str = "redial.ctl.tools_changed";

/// Publication into the result stream: a [`crate::ReportBatch`].
pub const RESULTS: &str = "redial.results";

/// Dispatchers share requests in this queue group: one of them answers.
pub const DISPATCHERS: &str = "dispatchers";

/// Stream of jobs.
pub const JOBS_STREAM: &str = "JOBS";
/// A job that nobody took for so long is dropped from its stream; its call is published again if it still waits.
pub const MAX_JOB_AGE: Duration = Duration::from_mins(10);
/// Stream of reports.
pub const RESULTS_STREAM: &str = "RESULTS";
/// Stream of submissions.
pub const INTAKE_STREAM: &str = "INTAKE";

/// Header with the W3C trace context of a submission or a job.
pub const TRACEPARENT: &str = "traceparent";

/// Header of a reply whose body is a [`crate::ApiError`] instead of the documented reply; its value is the code.
pub const ERROR: &str = "redial-error";

/// The name of a consumer: the workers of a pool that have the same tools share one. The first one of a pool is named
/// like the pool.
pub fn consumer_name(pool: &str, n: u32) -> String {
    if n <= 1 { pool.to_owned() } else { format!("{pool}+{n}") }
}

/// Checks the name of a consumer. The error says what is allowed.
pub fn check_consumer_name(name: &str) -> Result<(), String> {
    let (pool, number) = name.split_once('+').map_or((name, None), |(pool, number)| (pool, Some(number)));
    if number.is_some_and(|number| number.parse::<u32>().is_err()) {
        return Err(format!("consumer {name:?}: the name of a pool is allowed, and '+' and a number behind it"));
    }
    check_name("pool", pool)
}

/// Jobs of a tool for the workers of a consumer.
pub fn job(consumer: &str, tool: &str) -> String {
    format!("redial.jobs.{consumer}.{tool}")
}

/// All jobs for the workers of a consumer.
pub fn consumer_jobs(consumer: &str) -> String {
    format!("redial.jobs.{consumer}.>")
}

/// Control messages to a worker: a [`crate::ControlMessage`].
pub fn worker(worker: &WorkerId) -> String {
    format!("redial.worker.{worker}")
}

/// The end of a call with `notify`: a [`crate::CallView`].
pub fn call_events(call: CallId) -> String {
    format!("redial.events.calls.{call}")
}

/// News of a task: a [`crate::TaskNotice`].
pub fn task_events(task: TaskId) -> String {
    format!("redial.events.tasks.{task}")
}

/// A model's answer while it is being written: a [`crate::Delta`].
pub fn task_deltas(task: TaskId) -> String {
    format!("redial.events.tasks.{task}.delta")
}
