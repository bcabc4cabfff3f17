//! Answers what is on record of a call.

use axum::{
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use redial_proto::{CallId, Language};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{read::read_record, wait::end_within};
use crate::{
    extract::{Id, Query},
    gateway::Api,
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
    Api { gateway, who }: Api,
    Id(call): Id<CallId>,
    Query(query): Query<GetQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wait = prefer::wait(&headers);
    wait.map(|_| who.limits.wait_for(1)).transpose()?;
    if let Some(wait) = wait {
        end_within(&gateway, &who, call, query.language, wait).await?;
    }
    let record = read_record(&gateway, &who, call, query.language).await?;
    let ended = record.view.state.is_terminal();
    let mut response = axum::Json(record).into_response();
    if wait.is_some() && !ended {
        *response.status_mut() = StatusCode::ACCEPTED;
        prefer::wait_again(response.headers_mut(), &format!("/v1/calls/{call}"));
    }
    prefer::applied(response.headers_mut(), wait);
    Ok(response)
}
