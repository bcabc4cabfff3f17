//! Reports to a user what happened in a task.

use redial_proto::{ApiError, Code, TaskGet, TaskId, TaskReport, limits};

use crate::{asked::Asked, error::store_failed};

pub(crate) async fn get(asked: Asked, request: TaskGet) -> Result<TaskReport, ApiError> {
    let report = asked.store().task_report(request.task, request.after_step, limits::MAX_MESSAGE).await;
    report.map_err(|error| store_failed(&error))?.ok_or_else(|| not_found(request.task))
}

pub(crate) fn not_found(task: TaskId) -> ApiError {
    ApiError::new(Code::TaskNotFound, format!("no task {task} is on record"))
}
