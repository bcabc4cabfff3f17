//! Errors on the addresses that are compatible with OpenAI's.

use axum::http::StatusCode;
use serde_json::json;

use crate::problem::Problem;

/// Whether an address answers in OpenAI's form.
pub(crate) fn is_for(path: &str) -> bool {
    ["/v1/responses", "/v1/chat/", "/v1/models"].iter().any(|prefix| path.starts_with(prefix))
}

/// `{"error": {message, type, param, code}}`
pub(crate) fn body(problem: &Problem) -> Vec<u8> {
    let kind = match problem.status() {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    let param = problem.error.details.first().map(|detail| detail.path.clone());
    let error =
        json!({"message": problem.error.message, "type": kind, "param": param, "code": problem.error.code.as_str()});
    json!({"error": error}).to_string().into_bytes()
}
