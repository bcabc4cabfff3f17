//! Logs, traces and metrics of Redial's processes.
//!
//! Logs go to stderr, always. Traces and metrics leave the process over OTLP (HTTP, protobuf) only when one of the
//! standard `OTEL_EXPORTER_OTLP_*ENDPOINT` variables is set; otherwise nothing is collected and the calls in here cost
//! one check. Names of spans, attributes and instruments are in [`names`]; `docs/OPERATIONS.md` has the table for
//! operators.

mod context;
mod crypto;
mod error;
mod init;
mod logs;
mod metrics;
pub mod names;
mod otlp;
mod settings;
mod spans;

pub use context::{current_traceparent, set_parent};
pub use crypto::install_crypto;
pub use error::TelemetryError;
pub use init::{Telemetry, TelemetryConfig, init, is_exporting};
pub use logs::LogFormat;
pub use metrics::{Metrics, metrics};
pub use spans::{ChatReply, chat, execute_tool, ingest_result, record_chat, record_error, submit_call, submit_task};
