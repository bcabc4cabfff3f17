//! Stops a task.

use redial_proto::{ApiError, TaskCancel, TaskCancelReply};
use redial_records::Effect;

use super::get::not_found;
use crate::{asked::Asked, error::store_failed};

/// Asking again is the same as asking once.
pub(crate) async fn cancel(asked: Asked, request: TaskCancel) -> Result<TaskCancelReply, ApiError> {
    let state = asked.store().cancel_task(request.task).await.map_err(|error| store_failed(&error))?;
    let state = state.ok_or_else(|| not_found(request.task))?;
    if !state.is_terminal() {
        asked.carry_out(vec![Effect::WakeTask(request.task)]).await;
    }
    Ok(TaskCancelReply { state })
}
