//! Errors that a user can see. Each code is stable and has a page in `docs/errors/`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use strum::{VariantArray, VariantNames};

use crate::{FieldError, names::named};

/// What went wrong, for programs. Codes are never renamed; a client must accept codes that it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Code {
    /// The text is not JSON, or does not have the message's form.
    InvalidMessage,
    /// A message, argument or batch is over its limit.
    TooLarge,
    /// A field's value is not allowed.
    InvalidValue,
    /// No such tool is known.
    UnknownTool,
    /// The arguments break the tool's schema.
    InvalidArguments,
    /// The idempotency key was used with other content.
    IdempotencyConflict,
    /// No such agent is known.
    UnknownAgent,
    /// An agent's settings are wrong.
    InvalidAgent,
    /// No worker serves such a model.
    UnknownModel,
    /// No such call is on record.
    CallNotFound,
    /// No such task is on record.
    TaskNotFound,
    /// No such webhook is on record.
    WebhookNotFound,
    /// No such redrive is on record.
    RedriveNotFound,
    /// No such token is on record.
    TokenNotFound,
    /// The call's state does not allow what was asked.
    WrongState,
    /// The conversation, or everything of its tenant, is being erased; try again.
    BeingErased,
    /// The role of the request, the tenant's limits or the worker's identity do not allow it.
    Forbidden,
    /// Two processes of Redial, or a process and the database, are of versions that do not work together.
    IncompatibleVersion,
    /// The request has no valid token.
    Unauthenticated,
    /// Nothing is at this address of the HTTP API.
    NotFound,
    /// The address of the HTTP API does not take this method.
    MethodNotAllowed,
    /// The body of an HTTP request is of a type that is not read here.
    UnsupportedMediaType,
    /// Too many requests or streams of one tenant; try again.
    RateLimited,
    /// The dispatcher cannot reach Postgres or NATS; try again.
    Unavailable,
    /// A bug; the dispatcher's log has more.
    Internal,
    /// A setting in a file, an environment variable or a flag is wrong.
    InvalidConfiguration,
    /// A tool manifest is wrong.
    InvalidManifest,
    /// A program that Redial needs is not installed.
    MissingProgram,
    /// A command could not write all of its output.
    OutputIncomplete,
}

named!(Code, "an error code");

impl Code {
    /// True if the same request may succeed later, unchanged.
    pub const fn is_retryable(self) -> bool {
        self.retry_after().is_some()
    }

    /// When the same request may succeed, unchanged; `None` if it would fail again.
    pub const fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Unavailable | Self::RateLimited => Some(Duration::from_secs(1)),
            // An erasure takes seconds while somebody asks for it, and waits up to 20 s for a dispatcher otherwise.
            Self::BeingErased => Some(Duration::from_secs(5)),
            _ => None,
        }
    }
}

/// An error as users get it: over NATS, from the command line, in the audit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message} [{code}]")]
pub struct ApiError {
    /// For programs. A code of a newer version is read as `internal`; the message says what it is.
    #[serde(deserialize_with = "known")]
    pub code: Code,
    /// For people: what is wrong, where, and what is allowed.
    pub message: String,
    /// Broken rules of arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<FieldError>,
}

/// An error must reach its reader, whatever its code.
fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Code, D::Error> {
    Ok(String::deserialize(deserializer)?.parse().unwrap_or(Code::Internal))
}

impl ApiError {
    /// An error without details.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_newer_version_is_read() {
        let read = |json: &str| serde_json::from_str::<ApiError>(json).unwrap();
        let newer = read(r#"{"code":"too_windy","message":"wait for calm","wind":9}"#);
        assert_eq!((newer.code, newer.message.as_str()), (Code::Internal, "wait for calm"));
        assert_eq!(read(r#"{"code":"forbidden","message":""}"#).code, Code::Forbidden);
    }
}
