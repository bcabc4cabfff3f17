//! Reports to a user what happened in a task.

use std::sync::Arc;

use redial_proto::{ApiError, Code, TaskGet, TaskId, TaskReport, limits};

use crate::{context::Context, error::store_failed};

pub(crate) async fn get(context: Arc<Context>, request: TaskGet) -> Result<TaskReport, ApiError> {
    let report = context.store.task_report(request.task, request.after_step, limits::MAX_MESSAGE).await;
    report.map_err(|error| store_failed(&error))?.ok_or_else(|| not_found(request.task))
}

pub(crate) fn not_found(task: TaskId) -> ApiError {
    ApiError::new(Code::TaskNotFound, format!("no task {task} is on record"))
}
