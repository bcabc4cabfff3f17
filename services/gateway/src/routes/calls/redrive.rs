//! Stops a call, and runs an ended one again.

use axum::{
    http::{HeaderMap, HeaderValue},
    response::Response,
};
use redial_proto::{
    CallId, CancelReply, CancelRequest, Code, RedriveReply, RedriveRequest,
    subjects::{TRACEPARENT, Verb},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::submit::Accepted;
use crate::{
    extract::{Id, JsonOrNothing, text},
    gateway::Api,
    idempotency::REPLAYED,
    prefer,
    problem::{JsonResult, Problem},
};

/// How an ended call runs again.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RedriveCallBody {
    /// Other arguments. They are checked like those of a submission.
    #[schemars(with = "Option<serde_json::Value>")]
    arguments: Option<Box<RawValue>>,
}

pub(super) async fn cancel(Api { gateway, who }: Api, Id(call): Id<CallId>) -> JsonResult<CancelReply> {
    let request = CancelRequest { call };
    Ok(axum::Json(gateway.ask_twice(&who, Verb::CallCancel, &request).await?))
}

/// Redrives a call, once, so asking twice is safe.
pub(super) async fn redrive(
    Api { gateway, who }: Api,
    Id(call): Id<CallId>,
    headers: HeaderMap,
    JsonOrNothing(body): JsonOrNothing<RedriveCallBody>,
) -> Result<Response, Problem> {
    let wait = prefer::wait(&headers);
    wait.map(|_| who.limits.wait_for(1)).transpose()?;
    let caller = who.caller(Verb::CallRedrive)?;
    let request = RedriveRequest { calls: vec![call], arguments: body.arguments };
    let traceparent = text(&headers, TRACEPARENT);
    let reply: RedriveReply = gateway.ask_twice_as(&caller, Verb::CallRedrive, &request, traceparent).await?;
    let missing = || Problem::new(Code::Internal, "a dispatcher answered for no call");
    let accepted = Accepted::of(reply.results.into_iter().next().ok_or_else(missing)?)?;
    let mut response = match wait {
        Some(wait) => accepted.wait_for_any(&gateway, &who, wait).await?,
        None => accepted.response(),
    };
    prefer::applied(response.headers_mut(), wait);
    if accepted.replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}
