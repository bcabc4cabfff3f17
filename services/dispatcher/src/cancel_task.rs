//! Stops a task.

use std::sync::Arc;

use redial_proto::{ApiError, TaskCancel, TaskCancelReply};

use crate::{error::store_failed, get_task::not_found, shared::Shared};

/// Asking again is the same as asking once.
pub(crate) async fn cancel(shared: Arc<Shared>, request: TaskCancel) -> Result<TaskCancelReply, ApiError> {
    let state = shared.store.cancel_task(request.task).await.map_err(|error| store_failed(&error))?;
    let state = state.ok_or_else(|| not_found(request.task))?;
    if !state.is_terminal() {
        shared.pokes.poke(request.task);
    }
    Ok(TaskCancelReply { state })
}
