//! Classifies errors of providers and failed requests. Pure.
//!
//! | status | class |
//! | --- | --- |
//! | 400, 413, 422, other 4xx | `internal`: the request itself is wrong, or too long for the model |
//! | 401, 403, 407 | `auth` |
//! | 402, 404, 405, 406, 415, 426, 501, 3xx | `configuration`: no credit, no such model, no such interface |
//! | 408, 409, 425, 5xx, no connection, an incomplete stream, a body that is not JSON | `unavailable` |
//! | 429 | `rate_limited` |

use std::time::SystemTime;

use redial_proto::{ErrorClass, Failure, limits, retry_after};
use redial_redaction::io_kind;
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;

use crate::json::{self, halves};

/// Bytes of a provider's message that are quoted.
const SHOWN: usize = 1000;

/// Makes the failure of a model that cannot be asked until an operator corrects its configuration.
pub(crate) fn configuration(message: impl Into<String>) -> Failure {
    Failure::new(ErrorClass::Configuration, message).without_effect()
}

/// Makes the failure for a response whose status is not a success.
pub(crate) fn response(status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Failure {
    let class = class_of(status.as_u16());
    let name = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let redirect = if status.is_redirection() { " (redirects are not followed)" } else { "" };
    let answered = format!("the provider answered {}{name}{redirect}", status.as_u16());
    let message = provider_message(status, body).map_or(answered.clone(), |text| format!("{answered}: {text}"));
    let mut failure = Failure::new(class, message).without_effect();
    if matches!(class, ErrorClass::RateLimited | ErrorClass::Unavailable) {
        failure.retry_after_ms = retry_after::pause_ms(|name| headers.get(name)?.to_str().ok(), now);
    }
    failure
}

/// Makes the failure for an error that came with a success status, or in the middle of a stream.
pub(crate) fn reported(error: &Value) -> Failure {
    let class = status_of(error).map_or(ErrorClass::Unavailable, class_of);
    let message = message_in(error).unwrap_or_else(|| limits::shorten(&error.to_string(), SHOWN));
    Failure::new(class, format!("the provider reported an error: {message}"))
}

/// Makes the failure for a missing or incomplete response.
pub(crate) fn transport(error: &reqwest::Error) -> Failure {
    let timed_out = error.is_timeout().then(|| ": it took too long".to_owned());
    let why = io_kind(error).map(|kind| format!(": {kind}")).or(timed_out).unwrap_or_default();
    if error.is_connect() {
        return Failure::new(ErrorClass::Unavailable, format!("the provider cannot be reached{why}")).without_effect();
    }
    if error.is_builder() {
        return configuration("the model's settings do not give a valid HTTP request");
    }
    Failure::new(ErrorClass::Unavailable, format!("the connection to the provider was lost{why}"))
}

/// Makes the failure for a stream that ended before the answer was complete.
pub(crate) fn incomplete() -> Failure {
    Failure::new(ErrorClass::Unavailable, "the provider's stream ended too early")
}

/// Makes the failure for a body that is not JSON, usually the page of a proxy.
pub(crate) fn not_json(body: &[u8]) -> Failure {
    let start = limits::shorten(String::from_utf8_lossy(body).trim(), 200);
    Failure::new(ErrorClass::Unavailable, format!("the provider's response is not JSON; it starts with: {start}"))
}

const fn class_of(status: u16) -> ErrorClass {
    match status {
        401 | 403 | 407 => ErrorClass::Auth,
        300..=399 | 402 | 404 | 405 | 406 | 415 | 426 | 501 => ErrorClass::Configuration,
        408 | 409 | 425 => ErrorClass::Unavailable,
        429 => ErrorClass::RateLimited,
        400..=499 => ErrorClass::Internal,
        _ => ErrorClass::Unavailable,
    }
}

/// Returns the HTTP status that corresponds to an error.
fn status_of(error: &Value) -> Option<u16> {
    let number = ["code", "status", "status_code"].iter().find_map(|field| {
        let value = error.get(field)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    });
    if let Some(status) = number.and_then(|number| u16::try_from(number).ok()).filter(|status| *status >= 300) {
        return Some(status);
    }
    let names = ["type", "code"].iter().filter_map(|field| error.get(field)?.as_str());
    names.into_iter().find_map(|name| match name {
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" | "requests" | "tokens" => Some(429),
        "overloaded_error" | "api_error" | "server_error" | "timeout_error" => Some(503),
        "authentication_error" | "permission_error" | "invalid_api_key" => Some(401),
        "billing_error" => Some(402),
        "not_found_error" | "model_not_found" => Some(404),
        "invalid_request_error" | "context_length_exceeded" | "request_too_large" => Some(400),
        _ => None,
    })
}

/// Returns the provider's message. Of a 5xx response only the text of a structured error, because its pages contain
/// host names.
fn provider_message(status: StatusCode, body: &[u8]) -> Option<String> {
    if let Ok(body) = json::read(body) {
        let error = body.get("error").unwrap_or(&body);
        return message_in(error).or_else(|| message_in(&body));
    }
    let text = std::str::from_utf8(body).ok()?.trim();
    let shown = status.is_client_error() && !text.is_empty() && !text.starts_with('<');
    shown.then(|| limits::shorten(&text.replace('\0', "\u{fffd}"), SHOWN))
}

fn message_in(error: &Value) -> Option<String> {
    let message = ["message", "detail", "error"].iter().find_map(|field| error.get(field));
    let message = match message.unwrap_or(error) {
        Value::String(text) => text.clone(),
        list @ Value::Array(_) => list.to_string(),
        _ => return None,
    };
    let message = halves::join(message).trim().replace('\0', "\u{fffd}");
    (!message.is_empty()).then(|| limits::shorten(&message, SHOWN))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failure(status: u16, body: &str) -> Failure {
        response(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body.as_bytes(), SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn every_status_has_a_class() {
        use ErrorClass::{Auth, Configuration, Internal, RateLimited, Unavailable};
        for (class, statuses) in [
            (Internal, &[400, 410, 413, 418, 422, 431][..]),
            (Auth, &[401, 403, 407]),
            (Configuration, &[301, 308, 402, 404, 405, 415, 501]),
            (Unavailable, &[408, 409, 425, 500, 502, 503, 504, 520, 529, 599]),
            (RateLimited, &[429]),
        ] {
            for status in statuses {
                assert_eq!(failure(*status, "").class, class, "{status}");
            }
        }
    }

    #[test]
    fn messages_quote_the_provider() {
        for (status, body, message) in [
            (400, r#"{"error":{"message":"bad role","type":"x"}}"#, "the provider answered 400 Bad Request: bad role"),
            (404, r#"{"error":"model 'x' not found"}"#, "the provider answered 404 Not Found: model 'x' not found"),
            (422, r#"{"detail":[{"loc":1}]}"#, r#"the provider answered 422 Unprocessable Entity: [{"loc":1}]"#),
            (400, r#"{"object":"error","message":"too long"}"#, "the provider answered 400 Bad Request: too long"),
            (401, "no key\n", "the provider answered 401 Unauthorized: no key"),
            (502, "<html>nginx on web-3</html>", "the provider answered 502 Bad Gateway"),
            (502, "web-3 is down", "the provider answered 502 Bad Gateway"),
            (529, r#"{"type":"error","error":{"message":"Overloaded"}}"#, "the provider answered 529: Overloaded"),
            (307, "", "the provider answered 307 Temporary Redirect (redirects are not followed)"),
        ] {
            assert_eq!(failure(status, body).message, message);
        }
    }

    #[test]
    fn errors_without_a_status_are_classified() {
        for (error, class) in [
            (json!({"type": "overloaded_error", "message": "Overloaded"}), ErrorClass::Unavailable),
            (json!({"type": "rate_limit_error"}), ErrorClass::RateLimited),
            (json!({"code": 429, "message": "slow"}), ErrorClass::RateLimited),
            (json!({"code": "400", "type": "server_error"}), ErrorClass::Internal),
            (json!({"code": 7, "type": "authentication_error"}), ErrorClass::Auth),
            (json!({"code": "context_length_exceeded"}), ErrorClass::Internal),
            (json!("something"), ErrorClass::Unavailable),
            (json!(null), ErrorClass::Unavailable),
        ] {
            assert_eq!(reported(&error).class, class, "{error}");
        }
        assert_eq!(reported(&json!("no")).message, "the provider reported an error: no");
    }
}
