//! The decisions of a recorded task, repeated; and the record itself, as a regression test.

use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use redial_api::{Replay, ReplayDifference};
use redial_proto::{Code, TaskId};
use redial_views::{Difference, SavedTask, TaskAudit};

use super::get::not_found;
use crate::{
    extract::Id,
    gateway::{Api, Gateway},
    identity::Identity,
    problem::{JsonResult, Problem},
};

/// Bytes of a record that a gateway holds whole.
const LARGEST: u64 = 32 * 1024 * 1024;
/// Differences of an answer.
const DIFFERENCES: usize = 20;

pub(super) async fn replay(Api { gateway, who }: Api, Id(task): Id<TaskId>) -> JsonResult<Replay> {
    let share = gateway.long_read(&who).await?;
    let record = load(&gateway, &who, task).await?;
    let bug = |error: String| Problem::new(Code::Internal, format!("task {task} cannot be replayed: {error}"));
    let repeated = tokio::task::spawn_blocking(move || {
        // It goes on if the client goes away, and counts as long.
        let _share = share;
        // Through its JSON, like a record in a file, so that a file is never incomplete.
        let saved: SavedTask = serde_json::from_str(&serde_json::to_string(&record)?)?;
        let differences = saved.replay();
        serde_json::Result::Ok(Replay {
            task,
            steps: saved.steps.len(),
            decisions: saved.decisions(),
            identical: differences.is_empty(),
            difference_count: differences.len(),
            differences: differences.iter().take(DIFFERENCES).map(shown).collect(),
        })
    });
    let repeated = repeated.await.map_err(|error| bug(error.to_string()))?;
    Ok(axum::Json(repeated.map_err(|error| bug(error.to_string()))?))
}

fn shown(difference: &Difference) -> ReplayDifference {
    let value = |json: &Option<String>| json.as_deref().and_then(|json| serde_json::from_str(json).ok());
    let Difference { step, recorded, replayed } = difference;
    ReplayDifference { step: *step, recorded: value(recorded), replayed: value(replayed) }
}

pub(super) async fn record(Api { gateway, who }: Api, Id(task): Id<TaskId>) -> Result<Response, Problem> {
    let share = gateway.long_read(&who).await?;
    let record = load(&gateway, &who, task).await?;
    let bug =
        |error: String| Problem::new(Code::Internal, format!("the record of task {task} cannot be written: {error}"));
    let text = tokio::task::spawn_blocking(move || {
        let _share = share;
        serde_json::to_vec(&record)
    });
    let text = text.await.map_err(|error| bug(error.to_string()))?.map_err(|error| bug(error.to_string()))?;
    let mut response = ([(header::CONTENT_TYPE, "application/json")], text).into_response();
    if let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"task-{task}.json\"")) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

async fn load(gateway: &Gateway, who: &Identity, task: TaskId) -> Result<TaskAudit, Problem> {
    let store = gateway.store.of(&who.tenant);
    if store.task(task).await?.is_none() {
        return Err(not_found(task));
    }
    let bytes = store.task_size(task).await?;
    if bytes > LARGEST {
        let message = format!(
            "the record of the task has about {bytes} bytes; allowed here: {LARGEST}. Use `redial replay {task}` and `redial show {task} --json`"
        );
        return Err(Problem::new(Code::TooLarge, message));
    }
    gateway.hold(who, usize::try_from(bytes).unwrap_or(usize::MAX)).await?;
    TaskAudit::load(&gateway.store, task).await?.ok_or_else(|| not_found(task))
}
