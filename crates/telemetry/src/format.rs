//! The formats of log lines.

use std::str::FromStr;

use crate::error::TelemetryError;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text if stderr is a terminal, JSON otherwise.
    #[default]
    Auto,
    /// One readable line per event.
    Text,
    /// One JSON object per event: `timestamp`, `level`, `target`, `fields`, `span`.
    Json,
}

impl FromStr for LogFormat {
    type Err = TelemetryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(TelemetryError::Format(other.to_owned())),
        }
    }
}
