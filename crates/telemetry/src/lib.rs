//! Logs, traces and metrics of Redial's processes.
//!
//! Logs go to stderr, always, and to a file if the configuration names one. Traces and metrics leave the process over OTLP (HTTP, protobuf) only when one of the
//! standard `OTEL_EXPORTER_OTLP_*ENDPOINT` variables is set; otherwise nothing is collected and each call here costs one
//! check. `docs/OPERATIONS.md` lists the instruments.

mod config;
mod context;
mod error;
mod filter;
mod format;
mod init;
mod log_file;
mod logs;
mod metrics;
pub mod names;
mod otlp;
mod quiet;
mod set_aside;
mod settings;
mod spans;
mod visible;

pub use config::{LogFileConfig, TelemetryConfig};
pub use context::{current_traceparent, set_parent};
pub use error::{ALLOWED_FILTERS, TelemetryError};
pub use filter::is_filter;
pub use format::LogFormat;
pub use init::{Telemetry, init, is_exporting};
pub use metrics::{INSTRUMENTS, Instrument, Metrics, metrics};
pub use set_aside::set_aside;
pub use spans::{ChatReply, chat, execute_tool, ingest_result, record_chat, record_error, submit_call, submit_task};
pub use visible::{is_obeyed, visible, visible_in_colour, visible_json};
