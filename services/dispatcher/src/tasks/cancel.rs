//! Stops a task.

use redial_proto::{ApiError, TaskCancel, TaskCancelReply};
use redial_records::Effect;

use super::get::not_found;
use crate::{actions::Done, asked::Asked, error::store_failed};

/// Cancels a task; asking again is the same as asking once.
pub(crate) async fn cancel(asked: Asked, request: TaskCancel) -> Result<Done<TaskCancelReply>, ApiError> {
    let found = asked.store().cancel_task(request.task).await.map_err(|error| store_failed(&error))?;
    let (state, is_new) = found.ok_or_else(|| not_found(request.task))?;
    if !state.is_terminal() {
        asked.carry_out(vec![Effect::WakeTask(request.task)]).await;
    }
    Ok(Done { reply: TaskCancelReply { state }, changed: u64::from(is_new) })
}
