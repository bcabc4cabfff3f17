//! Classifies HTTP responses and failed requests. Pure.
//!
//! | status | class | effect possible |
//! | --- | --- | --- |
//! | 3xx | `configuration`: redirects are not followed | yes |
//! | 400, 422, 413, 414 | `invalid_arguments` | no |
//! | 401, 403, 407 | `auth` | no |
//! | 405, 406, 415, 426, 501 | `configuration` | no |
//! | 408 | `unavailable` | yes |
//! | 425 | `unavailable` | no |
//! | 429 | `rate_limited` | no |
//! | other 4xx: 404, 409, 410, 412, … | `business_rule` | no |
//! | other 5xx | `unavailable` | yes |
//! | no connection | `unavailable` | no |
//! | connection lost, incomplete response | `unavailable` | yes |
//! | response that cannot be decoded | `output_invalid` | yes |
//!
//! A message never contains the URL, and of a 5xx response only the text of a structured error, because its pages contain
//! stack traces and host names.

use std::{io, time::SystemTime};

use redial_proto::{ErrorClass, Failure, limits, retry_after};
use redial_redaction::io_kind;
use reqwest::{
    StatusCode,
    header::{CONTENT_TYPE, HeaderMap},
};

use crate::structured::{self, ReportedError};

/// Bytes of a plain-text body that a message quotes.
const SHOWN: usize = 500;

/// The failure for a response whose status is not a success.
pub(super) fn response(status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Failure {
    let reported = structured::read(body).unwrap_or_default();
    let (class, effect_possible) = class_of(status.as_u16());
    let text = reported.message.clone().or_else(|| plain_text(status, headers, body));
    let answered = format!("the service answered {}", describe(status));
    let message = text.map_or_else(|| answered.clone(), |text| format!("{answered}: {text}"));
    let mut failure = Failure::new(class, message);
    failure.effect_possible = effect_possible;
    failure.retry_after_ms = pause(class, headers, &reported, now);
    if class == ErrorClass::InvalidArguments {
        failure.details = reported.details;
    }
    failure
}

/// The failure for a missing or incomplete response.
pub(super) fn transport(error: &reqwest::Error) -> Failure {
    let kind = io_kind(error);
    let timed_out = error.is_timeout().then(|| ": it took too long".to_owned());
    let reason = kind.map(|kind| format!(": {kind}")).or(timed_out).unwrap_or_default();
    if error.is_connect() {
        let message = format!("the service cannot be reached{reason}");
        return Failure::new(ErrorClass::Unavailable, message).without_effect();
    }
    if error.is_timeout() {
        return Failure::new(ErrorClass::Timeout, "the service did not answer in time");
    }
    // reqwest reports an incomplete body as a decoding error as well.
    if error.is_decode() && matches!(kind, Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)) {
        return Failure::new(ErrorClass::OutputInvalid, "the service's response could not be decoded");
    }
    if error.is_builder() {
        return invalid_request();
    }
    Failure::new(ErrorClass::Unavailable, format!("the connection to the service was lost{reason}"))
}

/// The failure for a template that does not give a valid request.
pub(super) fn invalid_request() -> Failure {
    Failure::new(ErrorClass::Configuration, "the tool's templates do not give a valid HTTP request").without_effect()
}

const fn class_of(status: u16) -> (ErrorClass, bool) {
    match status {
        400 | 413 | 414 | 422 => (ErrorClass::InvalidArguments, false),
        401 | 403 | 407 => (ErrorClass::Auth, false),
        405 | 406 | 415 | 426 | 501 => (ErrorClass::Configuration, false),
        425 => (ErrorClass::Unavailable, false),
        429 => (ErrorClass::RateLimited, false),
        402 | 404 | 409..=499 => (ErrorClass::BusinessRule, false),
        300..=399 => (ErrorClass::Configuration, true),
        // Includes 408: it is unknown how much of the request arrived.
        _ => (ErrorClass::Unavailable, true),
    }
}

fn pause(class: ErrorClass, headers: &HeaderMap, reported: &ReportedError, now: SystemTime) -> Option<u64> {
    let retried = matches!(class, ErrorClass::RateLimited | ErrorClass::Unavailable);
    let header = |name: &str| headers.get(name)?.to_str().ok();
    retried.then(|| retry_after::pause_ms(header, now).or(reported.retry_after_ms)).flatten()
}

fn describe(status: StatusCode) -> String {
    let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let redirect = if status.is_redirection() { " (redirects are not followed)" } else { "" };
    format!("{}{reason}{redirect}", status.as_u16())
}

/// The body of a 4xx, if it is plain text.
fn plain_text(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let is_text = headers.get(CONTENT_TYPE).is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    let text = std::str::from_utf8(body).ok()?.trim();
    let shown = status.is_client_error() && is_text && !text.is_empty() && !text.starts_with(['<', '{', '[']);
    shown.then(|| limits::shorten(&text.replace('\0', "\u{fffd}"), SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, headers: &[(&str, &str)], body: &str) -> Failure {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        response(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes(), SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn every_status_has_a_class() {
        use ErrorClass::{Auth, BusinessRule, Configuration, InvalidArguments, RateLimited, Unavailable};
        for (status, class, effect_possible) in [
            (301, Configuration, true),
            (303, Configuration, true),
            (400, InvalidArguments, false),
            (401, Auth, false),
            (402, BusinessRule, false),
            (403, Auth, false),
            (404, BusinessRule, false),
            (405, Configuration, false),
            (408, Unavailable, true),
            (409, BusinessRule, false),
            (410, BusinessRule, false),
            (412, BusinessRule, false),
            (413, InvalidArguments, false),
            (415, Configuration, false),
            (418, BusinessRule, false),
            (422, InvalidArguments, false),
            (425, Unavailable, false),
            (429, RateLimited, false),
            (451, BusinessRule, false),
            (500, Unavailable, true),
            (501, Configuration, false),
            (502, Unavailable, true),
            (503, Unavailable, true),
            (504, Unavailable, true),
            (529, Unavailable, true),
            (599, Unavailable, true),
        ] {
            let failure = failure(status, &[], "");
            assert_eq!((failure.class, failure.effect_possible), (class, effect_possible), "{status}");
        }
    }

    #[test]
    fn messages_quote_the_service() {
        let text = ("content-type", "text/plain; charset=utf-8");
        for (status, headers, body, message) in [
            (404, &[][..], "", "the service answered 404 Not Found"),
            (404, &[text], "no such city\n", "the service answered 404 Not Found: no such city"),
            (404, &[("content-type", "text/html")], "<h1>no</h1>", "the service answered 404 Not Found"),
            (503, &[text], "db-7.internal is down", "the service answered 503 Service Unavailable"),
            (503, &[], r#"{"error":{"message":"busy"}}"#, "the service answered 503 Service Unavailable: busy"),
            (
                409,
                &[],
                r#"{"title":"Sold out","detail":"seat 3"}"#,
                "the service answered 409 Conflict: Sold out: seat 3",
            ),
            (307, &[], "", "the service answered 307 Temporary Redirect (redirects are not followed)"),
            (599, &[], "", "the service answered 599"),
        ] {
            assert_eq!(failure(status, headers, body).message, message);
        }
    }

    #[test]
    fn details_and_pauses_are_kept() {
        let body =
            r#"{"error":{"message":"bad","details":[{"path":"/days","rule":"maximum","sent":9,"allowed":"1 to 5"}]}}"#;
        assert_eq!(failure(422, &[], body).details[0].path, "/days");
        assert_eq!(failure(429, &[("retry-after", "7")], "").retry_after_ms, Some(7000));
        assert_eq!(failure(503, &[("retry-after", "7")], "").retry_after_ms, Some(7000));
        assert_eq!(failure(404, &[("retry-after", "7")], "").retry_after_ms, None);
        assert_eq!(failure(429, &[], r#"{"error":{"retry_after_ms":250}}"#).retry_after_ms, Some(250));
    }
}
