//! What an answer of a receiver means. Pure.
//!
//! Only 410 is final: any other answer that is no success may come from a deployment that goes on, or from something before the
//! receiver, so it is tried again until the delivery's deadline.

use std::{error::Error, time::SystemTime};

use redial_proto::{ErrorClass, Failure, FieldError, retry_after, webhook};
use redial_redaction::io_kind;
use redial_webhooks::Refused;
use reqwest::{StatusCode, header::HeaderMap};
use uuid::Uuid;

/// A receiver that is busy is asked again after so many ms.
const BUSY_MS: u64 = 5_000;

/// Makes the failure for an answer; `None` for a success.
pub(super) fn answer(status: StatusCode, headers: &HeaderMap, webhook: Uuid, now: SystemTime) -> Option<Failure> {
    if status.is_success() {
        return None;
    }
    let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let redirect = if status.is_redirection() { " (redirects are not followed)" } else { "" };
    let message = format!("the receiver answered {}{reason}{redirect}", status.as_u16());
    let failure = match status {
        StatusCode::GONE => {
            let gone = FieldError {
                path: String::new(),
                rule: webhook::GONE.to_owned(),
                sent: Some(webhook.to_string().into()),
                allowed: "a receiver that answers 2xx".to_owned(),
                hint: None,
            };
            let message = format!("{message}, which disables the webhook");
            return Some(Failure::new(ErrorClass::BusinessRule, message).with_details(vec![gone]));
        }
        StatusCode::TOO_MANY_REQUESTS => Failure::new(ErrorClass::RateLimited, message),
        _ => Failure::new(ErrorClass::Unavailable, message),
    };
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let asks = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    Some(Failure { retry_after_ms: asks.then(|| retry_after::pause_ms(header, now)).flatten(), ..failure })
}

/// Makes the failure for no answer.
pub(super) fn transport(error: &reqwest::Error) -> Failure {
    if let Some(refused) = source::<Refused>(error) {
        return self::refused(refused);
    }
    let kind = io_kind(error);
    let timed_out = error.is_timeout().then(|| ": it took too long".to_owned());
    let reason = kind.map(|kind| format!(": {kind}")).or(timed_out).unwrap_or_default();
    if error.is_connect() {
        return Failure::new(ErrorClass::Unavailable, format!("the receiver cannot be reached{reason}"))
            .without_effect();
    }
    if error.is_timeout() {
        return Failure::new(ErrorClass::Timeout, "the receiver did not answer in time");
    }
    Failure::new(ErrorClass::Unavailable, format!("the connection to the receiver was lost{reason}"))
}

/// Makes the failure for a target that is not allowed. Trying again would not help.
pub(super) fn refused(refused: &Refused) -> Failure {
    Failure::new(ErrorClass::Configuration, refused.to_string()).without_effect()
}

/// Makes the failure for a receiver that owes too many answers already.
pub(super) fn busy() -> Failure {
    let message = "earlier deliveries to this webhook are not answered yet, so this one was not sent";
    Failure::new(ErrorClass::Unavailable, message).without_effect().retry_after_ms(BUSY_MS)
}

fn source<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, headers: &[(&str, &str)]) -> Option<Failure> {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        answer(StatusCode::from_u16(status).unwrap(), &headers, Uuid::from_u128(1), SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn only_gone_is_final() {
        use ErrorClass::{BusinessRule, RateLimited, Unavailable};
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(failure(status, &[]), None, "{status}");
        }
        for (class, statuses) in
            [(Unavailable, &[301, 400, 401, 404, 500, 503][..]), (BusinessRule, &[410]), (RateLimited, &[429])]
        {
            for status in statuses {
                assert_eq!(failure(*status, &[]).unwrap().class, class, "{status}");
            }
        }
        assert_eq!(
            failure(302, &[("location", "http://127.0.0.1")]).unwrap().message,
            "the receiver answered 302 Found (redirects are not followed)"
        );
    }

    #[test]
    fn a_pause_is_obeyed_and_gone_names_the_webhook() {
        assert_eq!(failure(429, &[("retry-after", "7")]).unwrap().retry_after_ms, Some(7_000));
        assert_eq!(failure(503, &[("retry-after", "7")]).unwrap().retry_after_ms, Some(7_000));
        assert_eq!(failure(500, &[("retry-after", "7")]).unwrap().retry_after_ms, None);
        let gone = failure(410, &[]).unwrap();
        assert_eq!(
            (gone.details[0].rule.as_str(), gone.details[0].sent.clone()),
            ("gone", Some(Uuid::from_u128(1).to_string().into()))
        );
    }
}
