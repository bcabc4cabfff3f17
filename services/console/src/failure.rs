//! What is shown instead of a page that cannot be.

use axum::http::StatusCode;
use serde::Deserialize;

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

    /// What a person sent cannot be done.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Problem { detail: detail.into(), ..Problem::read(StatusCode::UNPROCESSABLE_ENTITY, b"{}") }.into()
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Problem { detail: detail.into(), ..Problem::read(StatusCode::FORBIDDEN, b"{}") }.into()
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
}
