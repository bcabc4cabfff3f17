//! The events of a task.

use axum::{http::HeaderMap, response::Response};
use redial_proto::TaskId;

use crate::{
    events::{After, follow_task},
    extract::{Id, Query},
    gateway::Api,
    problem::Problem,
};

pub(super) async fn events(
    Api { gateway, who }: Api,
    Id(task): Id<TaskId>,
    Query(after): Query<After>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    follow_task(gateway, who, task, &after, &headers).await
}
