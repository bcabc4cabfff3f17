//! What is shown instead of a page that cannot be.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;

use crate::{page::Shell, show};

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The API said no.
    Problem(Box<Problem>),
    /// The answer could not be read.
    Unreadable(String),
}

/// A problem document of the API.
#[derive(Debug, Deserialize)]
pub(crate) struct Problem {
    #[serde(skip)]
    pub(crate) status: StatusCode,
    /// What is wrong, where, and what is allowed.
    #[serde(default)]
    pub(crate) detail: String,
    #[serde(default)]
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) request_id: String,
    /// Broken rules.
    #[serde(default)]
    pub(crate) errors: Vec<Broken>,
}

/// One broken rule.
#[derive(Debug, Deserialize)]
pub(crate) struct Broken {
    #[serde(default)]
    pub(crate) pointer: String,
    #[serde(default)]
    pub(crate) rule: String,
    #[serde(default)]
    pub(crate) allowed: String,
    #[serde(default)]
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn read(status: StatusCode, body: &[u8]) -> Self {
        let read = serde_json::from_slice(body).unwrap_or_else(|_| Self {
            status,
            detail: String::from_utf8_lossy(body).chars().take(500).collect(),
            code: String::new(),
            request_id: String::new(),
            errors: Vec::new(),
        });
        Self { status, ..read }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

impl Failure {
    pub(crate) fn unreadable(path: &str, error: &dyn std::fmt::Display) -> Self {
        tracing::error!(path, %error, "The console could not read an answer of the API");
        Self::Unreadable(format!("The answer of {path} could not be read: {error}"))
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Problem {
            status: StatusCode::NOT_FOUND,
            detail: what.into(),
            code: "not_found".to_owned(),
            request_id: String::new(),
            errors: Vec::new(),
        }
        .into()
    }

    /// True if the visitor has to sign in.
    pub(crate) fn is_unauthenticated(&self) -> bool {
        matches!(self, Self::Problem(problem) if problem.status == StatusCode::UNAUTHORIZED)
    }

    /// The page about it. `here` is the address that was asked for.
    pub(crate) fn page(&self, shell: Shell, here: &str) -> Response {
        if self.is_unauthenticated() {
            return Redirect::to(&format!("/console/sign-in?next={}", show::url(here))).into_response();
        }
        let (status, problem) = match self {
            Self::Problem(problem) => (problem.status, Some(problem.as_ref())),
            Self::Unreadable(_) => (StatusCode::INTERNAL_SERVER_ERROR, None),
        };
        let detail = match self {
            Self::Problem(problem) => problem.detail.clone(),
            Self::Unreadable(detail) => detail.clone(),
        };
        let heading = heading(status);
        let page = FailurePage {
            shell: shell.titled(heading),
            heading,
            detail: show::plain(&detail),
            remedy: remedy(status),
            code: problem.map(|problem| problem.code.clone()).unwrap_or_default(),
            request_id: problem.map(|problem| problem.request_id.clone()).unwrap_or_default(),
            errors: problem.map_or(&[], |problem| problem.errors.as_slice()),
        };
        let mut response = crate::page::respond(&page);
        *response.status_mut() = status;
        response
    }
}

#[derive(askama::Template)]
#[template(path = "failure.html")]
struct FailurePage<'a> {
    shell: Shell,
    heading: &'static str,
    detail: String,
    remedy: &'static str,
    code: String,
    request_id: String,
    errors: &'a [Broken],
}

const fn heading(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 | 422 => "This address has a mistake",
        403 => "Not allowed",
        404 => "Not on record",
        409 => "It has changed meanwhile",
        429 => "Too many requests",
        503 => "Part of Redial is down",
        _ => "This page could not be made",
    }
}

const fn remedy(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 | 422 => "Correct the filter, or begin with an empty one.",
        403 => "Sign in with a token that has the role, or ask whoever administers Redial for it.",
        404 => "It may belong to another tenant, or its time on record is over (retention), or it was erased.",
        409 => "Go back, look at its state now, and decide again.",
        429 => "Wait a moment. A token has a limit of requests per second.",
        503 => {
            "Nothing is lost: what was accepted is on record. The page comes back by itself once Postgres, NATS and a dispatcher answer."
        }
        _ => "Try again. If it stays, the gateway's log has the reason under the request's id.",
    }
}
