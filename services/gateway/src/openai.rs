//! What is behind the addresses that are compatible with OpenAI's: an agent is a *model*, a part of a task a *response*.
//!
//! A task is cut into segments where its model calls functions of the client: there a response is complete, and the client's
//! answers begin the next one. Everything that is shown is derived from the steps on record ([`record`]), so each gateway
//! shows the same, with the same ids and numbers.

pub(crate) mod answer;
pub(crate) mod begin;
pub(crate) mod chat;
pub(crate) mod follow;
pub(crate) mod ids;
pub(crate) mod input;
pub(crate) mod items;
pub(crate) mod record;
pub(crate) mod request;
pub(crate) mod stream;
pub(crate) mod submit;

use axum::http::{HeaderValue, StatusCode, header::HeaderMap};
use redial_proto::{ApiError, Code, FieldError};

use crate::problem::Problem;

/// The prefix of Redial's own notes on a task; clients do not see them.
pub(crate) const OWN_NOTE: &str = "redial.";

/// A request that cannot be carried out, and the parameter that is at fault.
pub(crate) fn wrong(param: &str, message: impl Into<String>) -> Problem {
    let message = message.into();
    let detail = FieldError {
        path: param.to_owned(),
        rule: "allowed".to_owned(),
        sent: None,
        allowed: String::new(),
        hint: None,
    };
    let error = ApiError { code: Code::InvalidValue, message, details: vec![detail] };
    Problem::from(error).with_status(StatusCode::BAD_REQUEST)
}

/// Keeps the official client from sending again what is on record.
pub(crate) fn committed(headers: &mut HeaderMap) {
    headers.insert("x-should-retry", HeaderValue::from_static("false"));
}
