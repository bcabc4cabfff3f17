//! `redial cancel`: stops a task or a call with the request that any client sends.

use std::process::ExitCode;

use redial_proto::{
    ApiError, CallId, CallState, CancelReply, CancelRequest, Code, TaskCancel, TaskCancelReply, TaskId, TaskState,
    subjects::Verb,
};
use redial_queue::{Queue, QueueError};
use uuid::Uuid;

use crate::{
    connect::{self, api, request},
    exit,
    ids::{self, IdText, Of},
    output,
    settings::Settings,
};

pub(crate) async fn run(settings: &Settings, id: &IdText) -> anyhow::Result<ExitCode> {
    let id = ids::resolve(settings, id, Of::Any).await?;
    let queue = connect::queue(settings).await?;
    let (answer, text, stopped) = match task(&queue, TaskId(id)).await {
        Ok(TaskCancelReply { state }) => {
            (serde_json::json!({ "task": id, "state": state }), of_task(id, state), task_stops(state))
        }
        // It is the id of a call.
        Err(QueueError::Api(ApiError { code: Code::InvalidValue, .. })) => {
            let CancelReply { state } = call(&queue, CallId(id)).await.map_err(|error| not_found(id, error))?;
            (serde_json::json!({ "call": id, "state": state }), of_call(id, state), call_stops(state))
        }
        Err(error) => return Err(not_found(id, error)),
    };
    if settings.json() {
        output::json(&answer)?;
    } else {
        output::line(text)?;
    }
    Ok(if stopped { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

async fn task(queue: &Queue, task: TaskId) -> Result<TaskCancelReply, QueueError> {
    request(queue, Verb::TaskCancel, &TaskCancel { task }).await
}

async fn call(queue: &Queue, call: CallId) -> Result<CancelReply, QueueError> {
    request(queue, Verb::CallCancel, &CancelRequest { call }).await
}

fn not_found(id: Uuid, error: QueueError) -> anyhow::Error {
    match error {
        QueueError::Api(ApiError { code: Code::TaskNotFound | Code::CallNotFound, .. }) => connect::not_found(id),
        error => api(error),
    }
}

const fn task_stops(state: TaskState) -> bool {
    matches!(state, TaskState::Waiting | TaskState::Running | TaskState::Cancelled)
}

fn of_task(id: Uuid, state: TaskState) -> String {
    match state {
        TaskState::Waiting | TaskState::Running => {
            format!("task {id} will be cancelled once its running calls have stopped: redial watch {id}")
        }
        TaskState::Cancelled => format!("task {id} is cancelled"),
        TaskState::Other => format!("task {id} is in a state of a newer version of Redial"),
        TaskState::Succeeded | TaskState::Failed => format!("task {id} had already ended: {state}"),
    }
}

const fn call_stops(state: CallState) -> bool {
    matches!(state, CallState::Cancelled | CallState::Running)
}

fn of_call(id: Uuid, state: CallState) -> String {
    match state {
        CallState::Cancelled => format!("call {id} is cancelled: no further attempt starts"),
        CallState::Running => format!(
            "call {id} is running and its worker was asked to stop; it ends cancelled, or with its result if it finishes \
             first: redial show {id}"
        ),
        ended => format!("call {id} had already ended: {ended}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cancel_did_is_told() {
        let id: Uuid = "01936b1c-0000-7000-8000-000000000001".parse().unwrap();
        let calls = [CallState::Cancelled, CallState::Running, CallState::Unknown].map(|state| of_call(id, state));
        let tasks = [TaskState::Running, TaskState::Cancelled, TaskState::Failed].map(|state| of_task(id, state));
        insta::assert_snapshot!([calls, tasks].concat().join("\n"));
    }
}
