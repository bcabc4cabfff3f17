//! Stops a task.

use redial_proto::{TaskCancel, TaskCancelReply, TaskId, subjects::Verb};

use crate::{extract::Id, gateway::Api, problem::JsonResult};

pub(super) async fn cancel(Api { gateway, who }: Api, Id(task): Id<TaskId>) -> JsonResult<TaskCancelReply> {
    Ok(axum::Json(gateway.ask_twice(&who, Verb::TaskCancel, &TaskCancel { task }).await?))
}
