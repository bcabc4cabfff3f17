//! Why telemetry could not be set up. All of these are settings that an operator must change: stop the process and show
//! the text. No text contains a header, a password or the query of a URL.

/// What a filter may be.
pub const ALLOWED_FILTERS: &str =
    "a level (off, error, warn, info, debug, trace), or levels of targets too, such as info,redial_worker=debug";

/// A setting is wrong, or telemetry was started twice.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("log filter {filter:?}: {reason}; allowed: {ALLOWED_FILTERS}")]
    Filter { filter: String, reason: String },
    #[error("log format {0:?}; allowed: auto, text, json")]
    Format(String),
    /// A standard variable has a value that Redial cannot follow.
    #[error("{variable} is {value:?}; allowed: {allowed}")]
    Variable {
        variable: &'static str,
        value: String,
        /// What can be used instead.
        allowed: &'static str,
    },
    /// An endpoint is not a URL that spans or metrics could be sent to. The value is not shown: it may hold a password.
    #[error("{variable}: {reason}; allowed: an http:// or https:// URL")]
    Endpoint { variable: &'static str, reason: &'static str },
    /// The exporter could not be built for another reason.
    #[error("the OTLP exporter of {signal} cannot be built: {reason}")]
    Exporter {
        /// `traces` or `metrics`.
        signal: &'static str,
        reason: String,
    },
    #[error("log file {}: {reason}", path.display())]
    File { path: std::path::PathBuf, reason: String },
    /// Telemetry can be started once in a process.
    #[error("telemetry was started twice in this process")]
    AlreadyStarted,
}
