//! The agent of a task, as it was when the task was submitted.

use redial_api::TaskSpec;
use redial_proto::TaskId;
use redial_store::StoreError;

use super::get::not_found;
use crate::{extract::Id, gateway::Api, problem::JsonResult};

pub(super) async fn spec(Api { gateway, who }: Api, Id(task): Id<TaskId>) -> JsonResult<TaskSpec> {
    let found = gateway.store.of(&who.tenant).task_spec(task).await?;
    let (language, spec) = found.ok_or_else(|| not_found(task))?;
    let language = language.parse().map_err(StoreError::BadData)?;
    let bad = |error: serde_json::Error| StoreError::BadData(format!("task {task}: {error}"));
    Ok(axum::Json(TaskSpec { language, spec: serde_json::from_str(spec.get()).map_err(bad)? }))
}
