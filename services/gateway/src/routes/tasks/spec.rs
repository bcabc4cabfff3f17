//! The agent of a task, as it was when the task was submitted.

use axum::extract::State;
use redial_proto::{AgentSpec, Language, TaskId};
use redial_store::StoreError;
use schemars::JsonSchema;
use serde::Serialize;

use super::get::not_found;
use crate::{extract::Id, gateway::Shared, identity::Identity, problem::Problem};

/// By which settings a task is decided.
#[derive(Serialize, JsonSchema)]
pub(super) struct TaskSpec {
    /// Language of Redial's texts to the model.
    language: Language,
    /// The agent: its model, tools, limits and policy.
    spec: AgentSpec,
}

pub(super) async fn spec(
    State(gateway): State<Shared>,
    who: Identity,
    Id(task): Id<TaskId>,
) -> Result<axum::Json<TaskSpec>, Problem> {
    let found = gateway.store.of(&who.tenant).task_spec(task).await?;
    let (language, spec) = found.ok_or_else(|| not_found(task))?;
    let language = language.parse().map_err(StoreError::BadData)?;
    let bad = |error: serde_json::Error| StoreError::BadData(format!("task {task}: {error}"));
    Ok(axum::Json(TaskSpec { language, spec: serde_json::from_str(spec.get()).map_err(bad)? }))
}
