//! Submits tasks. The reply follows the commit.

use std::sync::Arc;

use redial_engine::tools::Tools;
use redial_proto::{
    AgentRef, ApiError, Code, SubmitStatus, TaskResult, TaskState, TaskSubmission, limits, subjects::Verb,
};
use redial_queue::{QueueError, Request};
use redial_records::{Effect, NewTask};
use redial_shares::FairQueue;
use redial_store::SubmittedTask;
use redial_telemetry::{metrics, submit_task};

use super::accept::{Files, accept};
use crate::{
    agents::Declared,
    asked::{Sent, caller},
    batcher::{BatchWork, Batching},
    context::Context,
    effects,
    error::store_failed,
    running::Running,
    serve::{self, Senders},
};

/// A submission, or why it cannot be read or may not be made.
pub(crate) struct Incoming {
    pub(crate) submission: Sent<TaskSubmission>,
    pub(crate) traceparent: Option<String>,
}

impl Incoming {
    fn task(&self) -> Option<&TaskSubmission> {
        self.submission.as_ref().ok().map(|(_, task)| task)
    }
}

pub(crate) async fn start(running: &Running) -> Result<(), QueueError> {
    let context = running.context.clone();
    let waiting = Submitter { context: context.clone(), unknown: None };
    let unknown = serve::start_batcher(
        running,
        Batching { name: "submit tasks of unknown tools", workers: 1, batch: 64 },
        &waiting,
    );
    let submitter = Submitter { context, unknown: Some(unknown) };
    let requests = serve::start_batcher(running, Batching { name: "submit tasks", workers: 2, batch: 64 }, &submitter);
    serve::feed(running, Senders::Users(Verb::TaskSubmit), requests).await
}

/// Tasks of unknown models or tools wait until the registry is read again, which may take long: they go to a batcher of their
/// own, so that all others are written meanwhile.
#[derive(Clone)]
struct Submitter {
    context: Arc<Context>,
    unknown: Option<Arc<FairQueue<Request>>>,
}

impl BatchWork<Request> for Submitter {
    async fn work(&self, batch: Vec<Request>) {
        let read = |request: Request| {
            let task =
                caller(&request, Verb::TaskSubmit).and_then(|caller| Ok((caller, serve::decode(&request.payload)?)));
            (request, task)
        };
        let batch: Vec<_> = batch.into_iter().map(read).collect();
        let batch = match &self.unknown {
            Some(unknown) => {
                let files = Files::of(&self.context).await;
                let tools = self.context.registry.tools();
                let names_unknown = |task: &Sent<TaskSubmission>| {
                    task.as_ref().is_ok_and(|(caller, task)| is_unknown(&accept(task, caller, &files, &tools, None)))
                };
                serve::hand_over(batch, unknown, names_unknown).await
            }
            None => batch,
        };
        self.submit(batch).await;
    }
}

impl Submitter {
    async fn submit(&self, batch: Vec<(Request, Sent<TaskSubmission>)>) {
        let (requests, incoming): (Vec<Request>, Vec<Incoming>) = batch
            .into_iter()
            .map(|(request, submission)| {
                let traceparent = request.traceparent.clone();
                (request, Incoming { submission, traceparent })
            })
            .unzip();
        let results = submit(&self.context, incoming, false).await;
        for (request, result) in requests.iter().zip(results) {
            request.reply(&result).await;
        }
    }
}

/// Accepts tasks, writes them, wakes them; returns the result of each, in order. One whose conversation is being erased is rejected,
/// unless `waits_for_erasure`.
pub(crate) async fn submit(context: &Context, incoming: Vec<Incoming>, waits_for_erasure: bool) -> Vec<TaskResult> {
    let files = Files::of(context).await;
    let incoming: Vec<Incoming> = incoming.into_iter().map(traced).collect();
    let warnings: Vec<Option<String>> =
        incoming.iter().map(|incoming| warning(incoming.task()?, &files.declared)).collect();
    let mut accepted = accept_all(&incoming, &files, &context.registry.tools());
    if accepted.iter().any(is_unknown) {
        // A worker may have registered it a moment ago, to another dispatcher.
        accepted = match context.registry.refresh_throttled(&context.store).await {
            Ok(()) => accept_all(&incoming, &files, &context.registry.tools()),
            Err(error) => {
                let reject = |task| if is_unknown(&task) { Err(error.clone()) } else { task };
                accepted.into_iter().map(reject).collect()
            }
        };
    }
    let mut tasks = Vec::with_capacity(accepted.len());
    let positions: Vec<Result<usize, ApiError>> = accepted
        .into_iter()
        .map(|task| {
            tasks.push(NewTask { waits_for_erasure, ..task? });
            Ok(tasks.len() - 1)
        })
        .collect();
    let written = write(context, &tasks).await;
    let result = |(position, warning): (Result<usize, ApiError>, Option<String>)| match position {
        Ok(n) => TaskResult { warning, ..written[n].clone() },
        Err(error) => TaskResult::rejected(error),
    };
    let results: Vec<TaskResult> = positions.into_iter().zip(warnings).map(result).collect();
    for result in &results {
        metrics().task_submitted(result.status.as_str());
    }
    results
}

/// Continues the trace of the submission.
fn traced(incoming: Incoming) -> Incoming {
    let agent = incoming.task().and_then(|task| match &task.agent {
        AgentRef::Name(name) => Some(name.as_str()),
        AgentRef::Inline(_) => None,
    });
    let (_span, traceparent) = submit_task(agent, incoming.traceparent.clone());
    Incoming { traceparent, ..incoming }
}

fn warning(task: &TaskSubmission, declared: &Declared) -> Option<String> {
    let problem = declared.problem.as_ref().filter(|_| matches!(task.agent, AgentRef::Name(_)))?;
    Some(format!("the file of agents is invalid, so an earlier version of the agent is used: {problem}"))
}

fn accept_all(incoming: &[Incoming], files: &Files, tools: &Tools) -> Vec<Result<NewTask, ApiError>> {
    let accept = |Incoming { submission, traceparent }: &Incoming| {
        let (caller, task) = submission.as_ref().map_err(Clone::clone)?;
        accept(task, caller, files, tools, traceparent.clone())
    };
    incoming.iter().map(accept).collect()
}

/// Says whether a model or a tool that it names is not known here, or something else is wrong with an agent.
fn is_unknown(task: &Result<NewTask, ApiError>) -> bool {
    task.as_ref().is_err_and(|error| matches!(error.code, Code::UnknownModel | Code::InvalidAgent))
}

/// Writes tasks, wakes them, and returns the result of each, in order.
async fn write(context: &Context, tasks: &[NewTask]) -> Vec<TaskResult> {
    let mut results = Vec::with_capacity(tasks.len());
    for tasks in tasks.chunks(limits::MAX_BATCH) {
        metrics().batch_size("submit_tasks", tasks.len());
        match context.store.submit_tasks(tasks).await {
            Ok(written) => {
                let new = tasks.iter().zip(&written).filter(|(_, written)| **written == SubmittedTask::Written);
                effects::carry_out(context, new.map(|(task, _)| Effect::WakeTask(task.id)).collect()).await;
                results.extend(tasks.iter().zip(written).map(|(task, written)| answer(task, written)));
            }
            Err(error) => {
                let rejected = TaskResult::rejected(store_failed(&error));
                results.resize(results.len() + tasks.len(), rejected);
            }
        }
    }
    results
}

fn answer(task: &NewTask, written: SubmittedTask) -> TaskResult {
    let (status, id, conversation, state) = match written {
        SubmittedTask::Written => (SubmitStatus::Accepted, task.id, task.conversation.clone(), TaskState::Waiting),
        SubmittedTask::Existing { id, conversation, state, content } if content == task.content => {
            (SubmitStatus::Existing, id, conversation, state)
        }
        SubmittedTask::Existing { id, .. } => {
            let message = format!(
                "key {:?} was used before for other content, by task {id}; use another key for another task",
                task.key.as_deref().unwrap_or_default()
            );
            return TaskResult::rejected(ApiError::new(Code::IdempotencyConflict, message));
        }
        SubmittedTask::BeingErased { whole_tenant } => return TaskResult::rejected(being_erased(task, whole_tenant)),
        SubmittedTask::Gone => {
            let message = "another task with its key, or its conversation, was being erased; try again";
            return TaskResult::rejected(ApiError::new(Code::Unavailable, message));
        }
    };
    TaskResult {
        status,
        task: Some(id),
        conversation: Some(conversation),
        state: Some(state),
        error: None,
        warning: None,
    }
}

fn being_erased(task: &NewTask, whole_tenant: bool) -> ApiError {
    let code = Code::BeingErased;
    let what = if whole_tenant {
        format!("everything of tenant {:?}", task.tenant)
    } else {
        format!("conversation {:?}", limits::shorten(&task.conversation, 200))
    };
    let seconds = code.retry_after().unwrap_or_default().as_secs();
    ApiError::new(
        code,
        format!("{what} is being erased, and nothing new begins in it meanwhile; try again in {seconds} s"),
    )
}
