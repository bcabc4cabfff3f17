//! What is shown instead of a page that cannot be.

use axum::http::StatusCode;
use redial_api::ProblemDocument;

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum Failure {
    Problem(Box<ProblemDocument>),
    Unreadable(String),
}

impl Failure {
    /// Reads an answer that is no success. One that is no problem document stands for itself.
    pub(crate) fn read(status: StatusCode, body: &[u8]) -> Self {
        let read = serde_json::from_slice(body).map(|problem| Self::Problem(Box::new(problem)));
        read.unwrap_or_else(|_| Self::new(status, String::from_utf8_lossy(body).chars().take(500).collect::<String>()))
    }

    /// Makes a problem that the console found itself.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let problem = ProblemDocument { status: status.as_u16(), detail: detail.into(), ..ProblemDocument::default() };
        Self::Problem(Box::new(problem))
    }

    pub(crate) fn unreadable(path: &str, error: &dyn std::fmt::Display) -> Self {
        tracing::error!(path, %error, "The console could not read an answer of the API");
        Self::Unreadable(format!("The answer of {path} could not be read: {error}"))
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        let (status, code) = (StatusCode::NOT_FOUND.as_u16(), "not_found".to_owned());
        let problem = ProblemDocument { status, code, detail: what.into(), ..ProblemDocument::default() };
        Self::Problem(Box::new(problem))
    }

    pub(crate) fn status(&self) -> StatusCode {
        let status = match self {
            Self::Problem(problem) => StatusCode::from_u16(problem.status).ok(),
            Self::Unreadable(_) => None,
        };
        status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(crate) fn is_unauthenticated(&self) -> bool {
        self.status() == StatusCode::UNAUTHORIZED
    }
}
