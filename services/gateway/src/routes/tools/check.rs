//! Checks arguments as a submission would, and changes nothing.

use redial_api::Checked;
use redial_proto::{Code, ListTools, ToolList, UserRole, limits::shorten, subjects::Verb};
use redial_views::check_arguments;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    extract::{Json, Name},
    gateway::Api,
    problem::{JsonResult, Problem},
};

/// Who may list tools may check.
pub(super) const ROLES: &[UserRole] = &[UserRole::Read];

/// What is checked.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckBody {
    /// An object, or a string that holds a model's text.
    #[schemars(with = "serde_json::Value")]
    arguments: Box<RawValue>,
}

pub(super) async fn check(
    Api { gateway, who }: Api,
    Name(tool): Name,
    Json(body): Json<CheckBody>,
) -> JsonResult<Checked> {
    let request = ListTools { tool: Some(tool.clone()), ..ListTools::default() };
    let list: ToolList = gateway.ask_twice(&who, Verb::ToolList, &request).await?;
    let missing = || Problem::new(Code::NotFound, format!("the tenant has no tool {:?}", shorten(&tool, 100)));
    let view = list.tools.into_iter().next().ok_or_else(missing)?;
    // A check may take about a second of a processor.
    let share = gateway.long_read(&who).await?;
    let checked = tokio::task::spawn_blocking(move || {
        // It goes on if the client goes away, and counts as long.
        let _share = share;
        check_arguments(&view.spec, body.arguments.get())
    });
    let checked = checked.await;
    checked
        .map(axum::Json)
        .map_err(|error| Problem::new(Code::Internal, format!("the check ended without a result: {error}")))
}
