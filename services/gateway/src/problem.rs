//! What a request gets that cannot be answered: a problem document (RFC 9457) with our code.

use std::{sync::Arc, time::Duration};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use redial_api::{ProblemDocument, ProblemField};
use redial_proto::{ApiError, CallId, Code, FieldError, TokenId, limits};
use redial_queue::QueueError;
use redial_store::StoreError;
use serde_json::value::RawValue;

use crate::refusals::{Reason, Refusal};

/// Where the page of a code is; the gateway serves it.
const PAGES: &str = "/errors/";
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) error: ApiError,
    /// Replaces the status of the code.
    status: Option<StatusCode>,
    retry_after: Option<Duration>,
    call: Option<CallId>,
    feedback: Option<Box<RawValue>>,
    pub(crate) refusal: Option<Box<Refusal>>,
}

pub(crate) type JsonResult<T> = Result<axum::Json<T>, Problem>;

impl Problem {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        ApiError::new(code, message).into()
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidValue, message)
    }

    /// Uses the same words for all that is wrong with a token, so that nobody learns which ids exist; counts why.
    pub(crate) fn unauthenticated(reason: Reason, token: Option<&TokenId>) -> Self {
        let message = "the token is missing, unknown, expired or revoked, or its user is gone; allowed: Authorization: Bearer \
                       rdl_<id>_<secret>, from `redial token create`";
        let refusal = Refusal { reason, token: token.cloned() };
        Self { refusal: Some(Box::new(refusal)), ..Self::new(Code::Unauthenticated, message) }
    }

    /// Fails if a time of the request is in a year that is not allowed.
    pub(crate) fn check_times(times: &[(&str, Option<DateTime<Utc>>)]) -> Result<(), Self> {
        times.iter().try_for_each(|(name, time)| limits::check_time(name, *time)).map_err(Self::invalid)
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Makes the problem of a call that is on record as refused.
    pub(crate) fn refused(error: ApiError, call: Option<CallId>, feedback: Option<Box<RawValue>>) -> Self {
        Self { call, feedback, ..error.into() }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| status(self.error.code))
    }

    /// Returns when the same request may be sent again; `None` if it would fail again.
    pub(crate) fn again(&self) -> Option<Duration> {
        self.retry_after.or_else(|| self.error.code.retry_after())
    }

    pub(crate) fn document(self, instance: &str, request_id: &str) -> ProblemDocument {
        let (status, code) = (self.status(), self.error.code.as_str());
        let field =
            |FieldError { path, rule, sent, allowed, hint }| ProblemField { pointer: path, rule, sent, allowed, hint };
        ProblemDocument {
            r#type: format!("{PAGES}{code}"),
            title: title(code),
            status: status.as_u16(),
            detail: self.error.message,
            instance: instance.to_owned(),
            code: code.to_owned(),
            request_id: request_id.to_owned(),
            errors: self.error.details.into_iter().map(field).collect(),
            call: self.call,
            feedback: self.feedback,
        }
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        Self { error, status: None, retry_after: None, call: None, feedback: None, refusal: None }
    }
}

/// What a dispatcher answered, or why none did.
impl From<QueueError> for Problem {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::Api(error) => error.into(),
            QueueError::NoResponders { .. } => Self::new(Code::Unavailable, "no dispatcher is running; try again"),
            error if error.is_retryable() => {
                tracing::warn!(%error, "A request to the dispatchers failed");
                Self::new(Code::Unavailable, "the dispatchers or NATS do not answer; try again")
            }
            error => {
                tracing::error!(%error, "A request to the dispatchers cannot be sent");
                error.into_api().into()
            }
        }
    }
}

/// The details are logged, and not for users.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        if error.is_transient() {
            tracing::warn!(%error, "A query failed");
            return Self::new(Code::Unavailable, "the database cannot be reached; try again");
        }
        tracing::error!(%error, "A query failed");
        Self::new(Code::Internal, "a query failed; the gateway's log has the reason")
    }
}

/// Without the address and the id of the request, which [`crate::layers::finish`] adds.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        let headers = response.headers_mut();
        if let Some(wait) = self.again() {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.error.code == Code::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"redial\""));
        }
        response.extensions_mut().insert(Told(Arc::new(Mutex::new(Some(self)))));
        response
    }
}

/// The problem that a response is about, in its extensions, which must be cloneable.
#[derive(Clone)]
pub(crate) struct Told(Arc<Mutex<Option<Problem>>>);

impl Told {
    /// Takes the problem; `None` the second time.
    pub(crate) fn take(&self) -> Option<Problem> {
        self.0.lock().take()
    }
}

pub const fn status(code: Code) -> StatusCode {
    match code {
        Code::InvalidMessage => StatusCode::BAD_REQUEST,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::Forbidden | Code::IncompatibleVersion => StatusCode::FORBIDDEN,
        Code::NotFound
        | Code::CallNotFound
        | Code::TaskNotFound
        | Code::RedriveNotFound
        | Code::TokenNotFound
        | Code::WebhookNotFound => StatusCode::NOT_FOUND,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::WrongState | Code::BeingErased => StatusCode::CONFLICT,
        Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::InvalidValue
        | Code::UnknownTool
        | Code::InvalidArguments
        | Code::IdempotencyConflict
        | Code::UnknownAgent
        | Code::InvalidAgent
        | Code::UnknownModel
        | Code::InvalidManifest => StatusCode::UNPROCESSABLE_ENTITY,
        Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Internal | Code::InvalidConfiguration | Code::MissingProgram | Code::OutputIncomplete => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

/// Makes `Unknown tool` of `unknown_tool`.
fn title(code: &str) -> String {
    let words = code.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
