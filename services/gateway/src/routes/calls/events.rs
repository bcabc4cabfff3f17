//! The events of a call.

use axum::{extract::State, http::HeaderMap, response::Response};
use redial_proto::CallId;

use crate::{
    events::{After, follow_call},
    extract::{Id, Query},
    gateway::Shared,
    identity::Identity,
    problem::Problem,
};

pub(super) async fn events(
    State(gateway): State<Shared>,
    who: Identity,
    Id(call): Id<CallId>,
    Query(after): Query<After>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    follow_call(gateway, who, call, &after, &headers).await
}
