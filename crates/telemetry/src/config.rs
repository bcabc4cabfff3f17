//! What a process says about itself and its logs.

use std::path::PathBuf;

use crate::format::LogFormat;

/// How this process logs, and who it is.
#[derive(Clone, Debug)]
pub struct TelemetryConfig {
    /// `service.name` of what is exported, unless `OTEL_SERVICE_NAME` says otherwise; for example `redial-worker`.
    pub service: &'static str,
    /// `service.instance.id`: tells the processes of one service apart.
    pub instance: String,
    pub format: LogFormat,
    /// What is logged, as directives of `EnvFilter`: `info`, or `info,redial_worker=debug`. Default: `info`. Traces do
    /// not depend on it.
    pub filter: String,
    /// A file that gets log lines, too. Default: none.
    pub file: Option<LogFileConfig>,
}

/// A log file; at 16 MiB it is renamed to `.old`.
#[derive(Clone, Debug)]
pub struct LogFileConfig {
    /// Continued if it exists.
    pub path: PathBuf,
    /// What is logged, as in [`TelemetryConfig::filter`].
    pub filter: String,
}

impl TelemetryConfig {
    /// Logs from info level on, as text on a terminal and as JSON elsewhere.
    pub fn new(service: &'static str, instance: impl Into<String>) -> Self {
        Self { service, instance: instance.into(), format: LogFormat::Auto, filter: "info".to_owned(), file: None }
    }
}
