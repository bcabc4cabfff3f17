//! Errors on the addresses that are compatible with OpenAI's.

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::problem::Problem;

/// Says whether an address answers in OpenAI's form.
pub(crate) fn is_for(path: &str) -> bool {
    ["/v1/responses", "/v1/chat/", "/v1/models"].iter().any(|prefix| path.starts_with(prefix))
}

/// The body of an error.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OpenaiError {
    error: OpenaiErrorDetail,
}

/// What is wrong.
#[derive(Serialize, JsonSchema)]
struct OpenaiErrorDetail {
    /// What is wrong, where, and what is allowed.
    message: String,
    /// The kind of error, as OpenAI names it.
    r#type: &'static str,
    /// The part of the request that is wrong.
    param: Option<String>,
    /// Stable name of the error, for programs. A client must accept codes that it does not know.
    code: &'static str,
}

pub(crate) fn body(problem: &Problem) -> Vec<u8> {
    let kind = match problem.status() {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    let error = OpenaiErrorDetail {
        message: problem.error.message.clone(),
        r#type: kind,
        // A pointer into a body that could not be read, as OpenAI writes it.
        param: problem.error.details.first().map(|detail| detail.path.trim_start_matches('/').replace('/', ".")),
        code: problem.error.code.as_str(),
    };
    serde_json::to_vec(&OpenaiError { error }).unwrap_or_default()
}
