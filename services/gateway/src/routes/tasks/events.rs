//! The events of a task.

use axum::{extract::State, http::HeaderMap, response::Response};
use redial_proto::TaskId;

use crate::{
    events::{After, follow_task},
    extract::{Id, Query},
    gateway::Shared,
    identity::Identity,
    problem::Problem,
};

pub(super) async fn events(
    State(gateway): State<Shared>,
    who: Identity,
    Id(task): Id<TaskId>,
    Query(after): Query<After>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    follow_task(gateway, who, task, &after, &headers).await
}
