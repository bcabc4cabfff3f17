//! Answers what is on record of a call.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use redial_proto::{CallId, CallView, Code, Language};
use redial_views::call_view;
use schemars::JsonSchema;
use serde::Deserialize;

use super::wait::{Ended, end_within};
use crate::{
    extract::{Id, Query},
    gateway::{Gateway, Shared},
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
    let mut response = match ended {
        Some(Ended(body)) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        None => {
            let view = read(&gateway, &who, call, query.language).await?;
            let status = if view.state.is_terminal() { StatusCode::OK } else { StatusCode::ACCEPTED };
            (status, axum::Json(view)).into_response()
        }
    };
    prefer::applied(response.headers_mut(), Some(wait));
    Ok(response)
}

/// A call of the tenant.
pub(super) async fn read(
    gateway: &Gateway,
    who: &Identity,
    call: CallId,
    language: Language,
) -> Result<CallView, Problem> {
    let records = gateway.store.of(&who.tenant).records_of(&[call]).await?;
    let not_found = || Problem::new(Code::CallNotFound, format!("no call {call} is on record"));
    Ok(call_view(records.into_iter().next().ok_or_else(not_found)?, language)?)
}
