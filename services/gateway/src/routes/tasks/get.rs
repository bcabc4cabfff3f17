//! Answers what is on record of a task.

use std::time::Duration;

use axum::{
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use redial_proto::{Code, TaskId, TaskReport, TaskView, limits};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::{
    extract::{Id, Query},
    gateway::{Api, Gateway},
    identity::Identity,
    prefer,
    problem::{JsonResult, Problem},
    watch::task_subject,
};

/// Which steps.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StepsQuery {
    /// Only steps after this one. `more` in the answer says whether there are more than one answer holds.
    #[serde(default)]
    after_step: u32,
    /// Only the last so many steps, 1 to 1,000: those after them are asked for with `after_step`.
    #[schemars(range(min = 1, max = 1_000))]
    last: Option<u32>,
}

pub(super) async fn get(
    Api { gateway, who }: Api,
    Id(task): Id<TaskId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Some(wait) = prefer::wait(&headers) else {
        return Ok(axum::Json(read(&gateway, &who, task).await?).into_response());
    };
    who.limits.wait_for(1)?;
    let view = end_within(&gateway, &who, task, wait).await?;
    let mut response = shown(&view);
    if !view.state.is_terminal() {
        prefer::wait_again(response.headers_mut(), &format!("/v1/tasks/{task}"));
    }
    prefer::applied(response.headers_mut(), Some(wait));
    Ok(response)
}

pub(super) async fn steps(
    Api { gateway, who }: Api,
    Id(task): Id<TaskId>,
    Query(query): Query<StepsQuery>,
) -> JsonResult<TaskReport> {
    let store = gateway.store.of(&who.tenant);
    let after = match query.last {
        None => query.after_step,
        Some(last @ 1..=1_000) => store.last_step(task).await?.saturating_sub(last).max(query.after_step),
        Some(last) => return Err(Problem::invalid(format!("last is {last}; allowed: 1 to 1000"))),
    };
    let report = store.task_report(task, after, limits::MAX_MESSAGE).await?;
    report.map(axum::Json).ok_or_else(|| not_found(task))
}

/// Answers 200 with a task that has ended, else 202.
pub(super) fn shown(view: &TaskView) -> Response {
    let status = if view.state.is_terminal() { StatusCode::OK } else { StatusCode::ACCEPTED };
    (status, axum::Json(view)).into_response()
}

/// Returns the task once it has ended, or as it is after the time.
pub(super) async fn end_within(
    gateway: &Gateway,
    who: &Identity,
    task: TaskId,
    wait: Duration,
) -> Result<TaskView, Problem> {
    let deadline = Instant::now() + wait;
    let mut waiter = gateway.hub.wait_for(task_subject(who, task));
    loop {
        let view = read(gateway, who, task).await?;
        if view.state.is_terminal() {
            return Ok(view);
        }
        let heard = tokio::select! {
            heard = timeout_at(deadline, waiter.next()) => heard.is_ok(),
            () = gateway.wait_is_over(who) => false,
        };
        if !heard {
            return Ok(view);
        }
    }
}

async fn read(gateway: &Gateway, who: &Identity, task: TaskId) -> Result<TaskView, Problem> {
    gateway.store.of(&who.tenant).task(task).await?.ok_or_else(|| not_found(task))
}

pub(super) fn not_found(task: TaskId) -> Problem {
    Problem::new(Code::TaskNotFound, format!("no task {task} is on record"))
}
