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
//! A message never contains the URL, and of the response only the text of a structured error: models read it, and pages
//! contain stack traces and host names. Other text is kept for operators; the plain text of a 4xx becomes part of the message
//! if the manifest says so.

use std::{io, time::SystemTime};

use redial_proto::{ErrorClass, Failure, limits, retry_after};
use redial_redaction::io_kind;
use reqwest::{
    StatusCode,
    header::{CONTENT_TYPE, HeaderMap},
};

use crate::structured::{self, ReportedError};

/// Bytes of an unstructured body that are kept.
const SHOWN: usize = 500;

/// A response whose status is not a success, and the start of its body.
#[derive(Clone, Copy)]
pub(super) struct FailedResponse<'a> {
    pub(super) status: StatusCode,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
}

/// Makes the failure for a response whose status is not a success. `text_to_model` lets the plain text of a 4xx be part
/// of the message.
pub(super) fn response(response: &FailedResponse<'_>, text_to_model: bool, now: SystemTime) -> Failure {
    let FailedResponse { status, headers, body } = *response;
    let structured = structured::read(body);
    let written = if structured.is_some() { String::new() } else { written(body) };
    let reported = structured.unwrap_or_default();
    let (class, effect_possible) = class_of(status.as_u16());
    let mut failure = Failure::new(class, format!("the service answered {}", describe(status)));
    let shown = !written.is_empty() && text_to_model && is_plain_text(status, headers, &written);
    if let Some(text) = reported.message.as_ref().or(shown.then_some(&written)) {
        failure.message = format!("{}: {text}", failure.message);
    }
    failure.effect_possible = effect_possible;
    failure.retry_after_ms = pause(class, headers, &reported, now);
    if class == ErrorClass::InvalidArguments {
        failure.details = reported.details;
    }
    failure.with_diagnostics(if shown { String::new() } else { written })
}

/// Makes the failure for a missing or incomplete response.
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

/// Makes the failure for a template that does not give a valid request.
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

/// Returns the start of a body, as text; empty for a body that is no text.
fn written(body: &[u8]) -> String {
    let text = match std::str::from_utf8(body) {
        Ok(text) => text,
        // The body may have been cut within a character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&body[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return String::new(),
    };
    limits::shorten(text.trim(), SHOWN).replace('\0', "\u{fffd}")
}

/// True for the plain text of a 4xx: what else a service writes without a form is no answer to its caller.
fn is_plain_text(status: StatusCode, headers: &HeaderMap, text: &str) -> bool {
    let declared = headers.get(CONTENT_TYPE).is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    status.is_client_error() && declared && !text.starts_with(['<', '{', '['])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, headers: &[(&str, &str)], body: &str) -> Failure {
        failure_with(false, status, headers, body)
    }

    fn failure_with(text_to_model: bool, status: u16, headers: &[(&str, &str)], body: &str) -> Failure {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let status = StatusCode::from_u16(status).unwrap();
        let failed = FailedResponse { status, headers: &headers, body: body.as_bytes() };
        response(&failed, text_to_model, SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn every_status_has_a_class() {
        use ErrorClass::{Auth, BusinessRule, Configuration, InvalidArguments, RateLimited, Unavailable};
        for (class, without_effect, with_effect) in [
            (Auth, &[401, 403][..], &[][..]),
            (BusinessRule, &[402, 404, 409, 410, 412, 418, 451], &[]),
            (Configuration, &[405, 415, 501], &[301, 303]),
            (InvalidArguments, &[400, 413, 422], &[]),
            (RateLimited, &[429], &[]),
            (Unavailable, &[425], &[408, 500, 502, 503, 504, 529, 599]),
        ] {
            for (statuses, effect_possible) in [(without_effect, false), (with_effect, true)] {
                for status in statuses {
                    let failure = failure(*status, &[], "");
                    assert_eq!((failure.class, failure.effect_possible), (class, effect_possible), "{status}");
                }
            }
        }
    }

    #[test]
    fn messages_quote_only_what_has_a_form() {
        for (status, body, message) in [
            (404, "", "the service answered 404 Not Found"),
            (503, r#"{"error":{"message":"busy"}}"#, "the service answered 503 Service Unavailable: busy"),
            (409, r#"{"title":"Sold out","detail":"seat 3"}"#, "the service answered 409 Conflict: Sold out: seat 3"),
            (307, "", "the service answered 307 Temporary Redirect (redirects are not followed)"),
            (599, "", "the service answered 599"),
        ] {
            for allowed in [false, true] {
                let failure = failure_with(allowed, status, &[], body);
                assert_eq!((failure.message.as_str(), failure.diagnostics), (message, None));
            }
        }
    }

    #[test]
    fn text_without_a_form_is_for_operators_unless_the_manifest_allows_it() {
        let (text, html) = (("content-type", "text/plain; charset=utf-8"), ("content-type", "text/html"));
        for (status, headers, body, allowed) in [
            (404, &[text][..], "no such city\n", true),
            (404, &[], "no such city", true),
            (404, &[html], "<h1>no</h1>", false),
            (404, &[], "<h1>no</h1>", false),
            (409, &[], r#"{"ok":false}"#, false),
            (503, &[text], "db-7.internal is down", false),
        ] {
            let kept = failure(status, headers, body);
            assert_eq!(kept.diagnostics.as_deref(), Some(body.trim()));
            assert!(!kept.message.contains(body.trim()), "{}", kept.message);
            let shown = failure_with(true, status, headers, body);
            let wanted = if allowed { format!("{}: {}", kept.message, body.trim()) } else { kept.message };
            assert_eq!((shown.message, shown.diagnostics.is_none()), (wanted, allowed), "{status} {body}");
        }
        assert_eq!(failure(404, &[], &"好".repeat(1000)).diagnostics.unwrap().len(), SHOWN - 2);
    }

    #[test]
    fn a_body_that_is_no_text_is_not_kept() {
        assert_eq!(written(b"\xff\xfe\x00"), "");
        assert_eq!(written("no 北京".as_bytes().split_last().unwrap().1), "no 北", "cut within a character");
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
