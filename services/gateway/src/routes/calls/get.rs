//! Answers what is on record of a call.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use redial_proto::{CallId, Language};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    read::read,
    wait::{Ended, end_within},
};
use crate::{
    extract::{Id, Query},
    gateway::Shared,
    identity::Identity,
    prefer,
    problem::Problem,
};

/// How a call is shown.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetQuery {
    /// The language of the feedback.
    #[serde(default)]
    language: Language,
}

pub(super) async fn get(
    State(gateway): State<Shared>,
    who: Identity,
    Id(call): Id<CallId>,
    Query(query): Query<GetQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Some(wait) = prefer::wait(&headers) else {
        return Ok(axum::Json(read(&gateway, &who, call, query.language).await?).into_response());
    };
    let _waits = who.limits.stream()?;
    let ended = end_within(&gateway, &who, call, query.language, wait).await?;
    let mut response = if let Some(Ended(body)) = ended {
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    } else {
        let view = read(&gateway, &who, call, query.language).await?;
        let status = if view.state.is_terminal() { StatusCode::OK } else { StatusCode::ACCEPTED };
        (status, axum::Json(view)).into_response()
    };
    prefer::applied(response.headers_mut(), Some(wait));
    Ok(response)
}
