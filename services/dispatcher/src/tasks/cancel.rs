//! Stops a task.

use std::sync::Arc;

use redial_proto::{ApiError, TaskCancel, TaskCancelReply};
use redial_records::Effect;

use super::get::not_found;
use crate::{context::Context, effects, error::store_failed};

/// Asking again is the same as asking once.
pub(crate) async fn cancel(context: Arc<Context>, request: TaskCancel) -> Result<TaskCancelReply, ApiError> {
    let state = context.store.cancel_task(request.task).await.map_err(|error| store_failed(&error))?;
    let state = state.ok_or_else(|| not_found(request.task))?;
    if !state.is_terminal() {
        effects::carry_out(&context, vec![Effect::WakeTask(request.task)]).await;
    }
    Ok(TaskCancelReply { state })
}
