//! Takes tasks.

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use redial_proto::{
    ApiError, Code, SubmitStatus, TaskResult, TaskSubmission,
    subjects::{TRACEPARENT, Verb},
};

use super::get::{end_within, shown};
use crate::{
    extract::{Json, text},
    gateway::Api,
    idempotency::{REPLAYED, key},
    prefer,
    problem::Problem,
};

pub(super) async fn submit(
    Api { gateway, who }: Api,
    headers: HeaderMap,
    Json(mut submission): Json<TaskSubmission>,
) -> Result<Response, Problem> {
    submission.key = key(&headers, submission.key)?;
    let wait = prefer::wait(&headers);
    wait.map(|_| who.limits.wait_for(1)).transpose()?;
    let caller = who.in_role(&[submission.role()])?;
    let traceparent = text(&headers, TRACEPARENT);
    // Without a key a second request would be a second task.
    let result: TaskResult = if submission.key.is_some() {
        gateway.ask_twice_as(&caller, Verb::TaskSubmit, &submission, traceparent).await?
    } else {
        gateway.ask_as(&caller, Verb::TaskSubmit, &submission, traceparent).await?
    };
    let Some(task) = result.task else {
        let missing = || ApiError::new(Code::Internal, "a dispatcher gave no reason");
        return Err(result.error.unwrap_or_else(missing).into());
    };
    let ended = match wait {
        Some(wait) => match end_within(&gateway, &who, task, wait).await {
            Ok(view) => Some(view).filter(|view| view.state.is_terminal()),
            // It is accepted, whatever keeps its end from being read: an error would invite to send it again.
            Err(problem) if problem.again().is_some() => None,
            Err(problem) => return Err(problem),
        },
        None => None,
    };
    let mut response = if let Some(view) = &ended {
        shown(view)
    } else {
        let headers = [(header::LOCATION, format!("/v1/tasks/{task}"))];
        (StatusCode::ACCEPTED, headers, axum::Json(&result)).into_response()
    };
    if wait.is_some() && ended.is_none() {
        prefer::wait_again(response.headers_mut(), &format!("/v1/tasks/{task}"));
    }
    prefer::applied(response.headers_mut(), wait);
    if result.status == SubmitStatus::Existing {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}
