//! The events of a call.

use axum::{http::HeaderMap, response::Response};
use redial_proto::CallId;

use crate::{
    events::{After, follow_call},
    extract::{Id, Query},
    gateway::Api,
    problem::Problem,
};

pub(super) async fn events(
    Api { gateway, who }: Api,
    Id(call): Id<CallId>,
    Query(after): Query<After>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    follow_call(gateway, who, call, &after, &headers).await
}
