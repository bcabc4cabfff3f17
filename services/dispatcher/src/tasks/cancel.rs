//! Stops a task.

use redial_proto::{ApiError, CallId, Code, TaskCancel, TaskCancelReply};
use redial_records::Effect;

use super::get::not_found;
use crate::{actions::Done, asked::Asked, error::store_failed};

/// Asking again is the same as asking once.
pub(crate) async fn cancel(asked: Asked, request: TaskCancel) -> Result<Done<TaskCancelReply>, ApiError> {
    let found = asked.store().cancel_task(request.task).await.map_err(|error| store_failed(&error))?;
    let (state, is_new) = found.ok_or_else(|| not_found(request.task))?;
    if !state.is_terminal() {
        asked.carry_out(vec![Effect::WakeTask(request.task)]).await;
    }
    Ok(Done { reply: TaskCancelReply { state }, changed: u64::from(is_new) })
}

/// A client that has only an id asks for a task first: if it is that of a call, nothing was asked of a task.
pub(crate) async fn check(asked: &Asked, request: &TaskCancel) -> Result<(), ApiError> {
    let id = request.task;
    if !asked.store().has_call(CallId(id.0)).await.map_err(|error| store_failed(&error))? {
        return Ok(());
    }
    let message = format!("task: {id} is a call; allowed: the id of a task (calls.cancel stops a call)");
    Err(ApiError::new(Code::InvalidValue, message))
}
