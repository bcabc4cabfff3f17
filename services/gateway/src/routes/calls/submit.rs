//! Takes calls.

use std::time::Duration;

use axum::{
    extract::{FromRequest, Request},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use redial_proto::{
    ApiError, CallId, CallState, Code, Language, Submission, SubmitBatch, SubmitBatchReply, SubmitResult, SubmitStatus,
    limits,
    subjects::{TRACEPARENT, Verb},
};
use serde_json::value::RawValue;

use super::{Ended, ended_within, ndjson, wait::end_within};
use crate::{
    extract::{RawJson, check_encoding, json, media_type, text, wrong_type},
    gateway::{Api, Gateway},
    idempotency::{REPLAYED, key, no_common_key},
    identity::Identity,
    prefer,
    problem::Problem,
};

pub(super) async fn submit(Api { gateway, who }: Api, request: Request) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    match media_type(&headers).as_deref() {
        Some(ndjson::MEDIA) => {
            check_encoding(&headers)?;
            no_common_key(&headers)?;
            ndjson::submit(gateway, &who, request).await
        }
        Some("application/json") => {
            let RawJson(body) = RawJson::from_request(request, &gateway).await?;
            match Shape::of(&body)? {
                Shape::One(submission) => one(&gateway, &who, *submission, &headers).await,
                Shape::Many(calls) => {
                    no_common_key(&headers)?;
                    many(&gateway, &who, calls, &headers).await
                }
            }
        }
        other => Err(wrong_type(other, "application/json or application/x-ndjson")),
    }
}

enum Shape {
    One(Box<Submission>),
    Many(Vec<Box<RawValue>>),
}

impl Shape {
    fn of(body: &[u8]) -> Result<Self, Problem> {
        /// Shows only which of both it is.
        #[derive(serde::Deserialize)]
        #[serde(expecting = "an object: a call, or calls with a list")]
        struct HasCalls {
            calls: Option<serde::de::IgnoredAny>,
        }
        let many = if body.trim_ascii_start().first() == Some(&b'[') {
            Some(json(body)?)
        } else if json::<HasCalls>(body)?.calls.is_some() {
            Some(json::<SubmitBatch>(body)?.calls)
        } else {
            None
        };
        if let Some(calls) = many {
            return check_count(calls.len()).map(|()| Self::Many(calls));
        }
        json(body).map(|submission| Self::One(Box::new(submission)))
    }
}

fn check_count(calls: usize) -> Result<(), Problem> {
    let most = limits::MAX_BATCH;
    if (1..=most).contains(&calls) {
        return Ok(());
    }
    let message = format!("the list holds {calls} calls; allowed: 1 to {most}, and any number as application/x-ndjson");
    Err(Problem::new(if calls == 0 { Code::InvalidValue } else { Code::TooLarge }, message))
}

async fn one(
    gateway: &Gateway,
    who: &Identity,
    mut submission: Submission,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    submission.key = key(headers, submission.key)?;
    let wait = prefer::wait(headers);
    wait.map(|_| who.limits.wait_for(1)).transpose()?;
    submission.notify |= wait.is_some();
    let caller = who.caller(Verb::CallSubmit)?;
    let traceparent = text(headers, TRACEPARENT);
    // Without a key a second request would be a second call.
    let result: SubmitResult = if submission.key.is_some() {
        gateway.ask_twice_as(&caller, Verb::CallSubmit, &submission, traceparent).await?
    } else {
        gateway.ask_as(&caller, Verb::CallSubmit, &submission, traceparent).await?
    };
    let accepted = Accepted::of(result)?;
    let mut response = match wait {
        Some(wait) => accepted.wait(gateway, who, wait).await?,
        None => accepted.response(),
    };
    prefer::applied(response.headers_mut(), wait);
    if accepted.replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// A call that is on record and not refused.
pub(super) struct Accepted {
    call: CallId,
    pub(super) replayed: bool,
    result: SubmitResult,
}

impl Accepted {
    pub(super) fn of(result: SubmitResult) -> Result<Self, Problem> {
        let error = |result: &SubmitResult| {
            result.error.clone().unwrap_or_else(|| ApiError::new(Code::Internal, "a dispatcher gave no reason"))
        };
        match (result.status, result.call) {
            (SubmitStatus::Accepted | SubmitStatus::Existing, Some(call)) => {
                Ok(Self { call, replayed: result.status == SubmitStatus::Existing, result })
            }
            (SubmitStatus::Refused, call) => Err(Problem::refused(error(&result), call, result.feedback)),
            (..) => Err(error(&result).into()),
        }
    }

    pub(super) fn response(&self) -> Response {
        let headers = [(header::LOCATION, format!("/v1/calls/{}", self.call))];
        (StatusCode::ACCEPTED, headers, axum::Json(&self.result)).into_response()
    }

    async fn wait(&self, gateway: &Gateway, who: &Identity, wait: Duration) -> Result<Response, Problem> {
        let ended = self.result.state.is_some_and(CallState::is_terminal);
        self.after_wait(ended_within(gateway, who, self.call, ended, wait).await)
    }

    /// Waits for the end of a call without `notify`, whose end no event tells.
    pub(super) async fn wait_for_any(
        &self,
        gateway: &Gateway,
        who: &Identity,
        wait: Duration,
    ) -> Result<Response, Problem> {
        self.after_wait(end_within(gateway, who, self.call, Language::default(), wait).await)
    }

    /// Accepts the call, whatever keeps its end from being read: an error that has it sent again would double it.
    fn after_wait(&self, ended: Result<Option<Ended>, Problem>) -> Result<Response, Problem> {
        match ended {
            Ok(Some(Ended(body))) => return Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response()),
            Err(problem) if problem.again().is_none() => return Err(problem),
            Ok(None) | Err(_) => {}
        }
        let mut response = self.response();
        prefer::wait_again(response.headers_mut(), &format!("/v1/calls/{}", self.call));
        Ok(response)
    }
}

async fn many(
    gateway: &Gateway,
    who: &Identity,
    calls: Vec<Box<RawValue>>,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let caller = who.caller(Verb::CallSubmit)?;
    let batch = SubmitBatch { calls };
    let reply: SubmitBatchReply = gateway.ask_as(&caller, Verb::CallSubmit, &batch, text(headers, TRACEPARENT)).await?;
    Ok(axum::Json(reply).into_response())
}
