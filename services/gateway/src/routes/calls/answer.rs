//! Answers a call of a function that the client serves.

use redial_proto::{AnswerReply, AnswerRequest, CallId, FunctionError, subjects::Verb};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    extract::{Id, Json},
    gateway::Api,
    problem::JsonResult,
};

/// An answer: either `output` or `error`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerBody {
    /// The result: any JSON.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Value>")]
    output: Output,
    /// Why there is no result.
    error: Option<FunctionError>,
}

/// `null` is a result, too.
#[derive(Default)]
struct Output(Option<Box<RawValue>>);

impl<'de> Deserialize<'de> for Output {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|output| Self(Some(output)))
    }
}

/// Answers a call. The first answer counts, so asking twice is safe.
pub(super) async fn answer(
    Api { gateway, who }: Api,
    Id(call): Id<CallId>,
    Json(body): Json<AnswerBody>,
) -> JsonResult<AnswerReply> {
    let request = AnswerRequest { call, output: body.output.0, error: body.error };
    Ok(axum::Json(gateway.ask_twice(&who, Verb::CallAnswer, &request).await?))
}
