//! What can go wrong on the queue. Callers that retry ask [`QueueError::is_retryable`]; the others are
//! configuration errors or bugs, which the service logs.

use std::{fmt, time::Duration};

use redial_proto::{ApiError, Code};

/// What to do about a login that does not fit.
const BELONGS: &str = "`redial env` prints the login, the tenant, the user and the inbox prefix that belong together, and the access file \
                       names the roles of a user and the pools of a worker";

#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error("NATS URL {url:?}: {reason}; allowed: nats://host:port or tls://host:port, several separated by commas")]
    Url {
        /// Without the password.
        url: String,
        reason: String,
    },
    #[error("NATS credentials file {path}: {reason}")]
    Credentials { path: String, reason: String },
    /// The server refused user, password or credentials. Trying again would not help.
    #[error("NATS at {address} refused the login{}; set the right user and password in nats_url, or the right file in \
             nats_credentials", of(.user.as_deref()))]
    Refused {
        /// Without the password.
        address: String,
        user: Option<String>,
    },
    /// There is no connection; the client is reconnecting.
    #[error("NATS is not connected")]
    Disconnected,
    /// No answer in time. What was asked may still have happened.
    #[error("{what}: no answer from NATS within {} ms", .after.as_millis())]
    Timeout {
        /// What was tried.
        what: String,
        after: Duration,
    },
    /// No process serves the subject.
    #[error("{subject}: no dispatcher is listening")]
    NoResponders { subject: String },
    /// The server's permissions do not allow this login to send to the subject: nobody has got it.
    #[error("{subject}: the NATS server does not allow this login to send to it; {BELONGS}")]
    Forbidden { subject: String },
    /// The server's permissions do not allow this login to hear the answers: what was asked may have happened.
    #[error(
        "{inbox}: the NATS server does not allow this login to receive answers here; set its inbox prefix in \
             nats_inbox_prefix; {BELONGS}"
    )]
    NoAnswersAllowed {
        /// Where answers would have arrived.
        inbox: String,
    },
    /// The other side answered with an error.
    #[error(transparent)]
    Api(ApiError),
    /// The message is over the limit; sending it would have closed the connection.
    #[error("{subject}: a message of {bytes} bytes; at most {max} are allowed")]
    TooLarge { subject: String, bytes: usize, max: usize },
    /// The stream or its disk is full: try again later.
    #[error("{subject}: the stream accepts no more messages: {reason}")]
    Full {
        subject: String,
        /// The server's message.
        reason: String,
    },
    /// The stream or consumer does not exist: it was never created, or the store was wiped.
    #[error("{name} does not exist on this NATS server")]
    Missing {
        /// Which.
        name: String,
    },
    /// Fewer servers of the cluster answer than a stream shall have replicas.
    #[error("{name}: NATS has too few servers with JetStream for that many replicas: {reason}")]
    TooFewServers {
        /// What was asked.
        name: String,
        /// The server's message.
        reason: String,
    },
    /// A stream or consumer exists with settings that Redial cannot work with.
    #[error("{name}: {field} is {found}; {wanted} is needed (delete it, and the dispatcher creates it again)")]
    Settings {
        /// Which.
        name: String,
        field: &'static str,
        /// What was read back.
        found: String,
        /// What is needed.
        wanted: String,
    },
    /// A name that cannot be used in a subject.
    #[error("{0}")]
    Name(String),
    /// A message does not have the expected form.
    #[error("{subject}: {reason}")]
    Decode {
        /// The subject that it arrived on.
        subject: String,
        reason: String,
    },
    /// Any other answer of the server or the client library.
    #[error("{what}: {reason}")]
    Nats {
        /// What was tried.
        what: String,
        /// The answer.
        reason: String,
    },
}

fn of(user: Option<&str>) -> String {
    user.map(|user| format!(" of user {user:?}")).unwrap_or_default()
}

impl QueueError {
    /// True if the same may succeed later, unchanged.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Disconnected
            | Self::Timeout { .. }
            | Self::NoResponders { .. }
            | Self::Full { .. }
            | Self::Missing { .. }
            | Self::TooFewServers { .. }
            | Self::Nats { .. } => true,
            Self::Api(error) => error.code.is_retryable(),
            Self::Url { .. }
            | Self::Credentials { .. }
            | Self::Refused { .. }
            | Self::Forbidden { .. }
            | Self::NoAnswersAllowed { .. }
            | Self::TooLarge { .. }
            | Self::Settings { .. }
            | Self::Name(_)
            | Self::Decode { .. } => false,
        }
    }

    /// True if the server could not be reached, or did not answer: nobody else can be sure to reach it either.
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Disconnected | Self::Timeout { .. } | Self::NoResponders { .. })
    }

    /// Returns its code for a user.
    pub fn code(&self) -> Code {
        match self {
            Self::Api(error) => error.code,
            Self::TooLarge { .. } => Code::TooLarge,
            Self::Forbidden { .. } | Self::NoAnswersAllowed { .. } => Code::Forbidden,
            Self::Url { .. } | Self::Credentials { .. } | Self::Refused { .. } | Self::Settings { .. } => {
                Code::InvalidConfiguration
            }
            Self::Name(_) => Code::InvalidValue,
            Self::Decode { .. } => Code::InvalidMessage,
            Self::Disconnected
            | Self::Timeout { .. }
            | Self::NoResponders { .. }
            | Self::Full { .. }
            | Self::Missing { .. }
            | Self::TooFewServers { .. }
            | Self::Nats { .. } => Code::Unavailable,
        }
    }

    /// Converts it to the error for a user.
    pub fn into_api(self) -> ApiError {
        match self {
            Self::Api(error) => error,
            other => ApiError::new(other.code(), other.to_string()),
        }
    }

    pub(crate) fn nats(what: impl Into<String>, reason: &(impl fmt::Display + ?Sized)) -> Self {
        Self::Nats { what: what.into(), reason: reason.to_string() }
    }
}
