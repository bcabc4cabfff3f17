//! Stops a task.

use axum::extract::State;
use redial_proto::{TaskCancel, TaskCancelReply, TaskId, subjects::Verb};

use crate::{extract::Id, gateway::Shared, identity::Identity, problem::Problem};

pub(super) async fn cancel(
    State(gateway): State<Shared>,
    who: Identity,
    Id(task): Id<TaskId>,
) -> Result<axum::Json<TaskCancelReply>, Problem> {
    Ok(axum::Json(gateway.ask_twice(&who, Verb::TaskCancel, &TaskCancel { task }).await?))
}
