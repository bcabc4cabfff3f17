//! The states of a call.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a call stands. Terminal states never change again; the database has a trigger that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// Waits for a worker to claim it.
    Ready,
    /// A worker holds it under a lease.
    Running,
    /// An attempt failed; the next one is due at `wake_at`.
    RetryWait,
    /// A result is on record.
    Succeeded,
    /// Ended with an error.
    Failed,
    /// An `unsafe` tool may or may not have done its work; a person has to look.
    Unknown,
    /// The user cancelled it.
    Cancelled,
    /// Never ran: bad arguments, unknown tool.
    Refused,
}

impl CallState {
    /// Every state, in the order of a call's life.
    pub const ALL: [Self; 8] = [
        Self::Ready,
        Self::Running,
        Self::RetryWait,
        Self::Succeeded,
        Self::Failed,
        Self::Unknown,
        Self::Cancelled,
        Self::Refused,
    ];

    /// True if nothing can happen to the call any more.
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Ready | Self::Running | Self::RetryWait)
    }

    /// The name used on the wire, in the database and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running => "running",
            Self::RetryWait => "retry_wait",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for CallState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for CallState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::as_str).join(", ");
            format!("{text:?} is no state of a call; allowed: {allowed}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_wire() {
        for state in CallState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
            assert_eq!(state.as_str().parse::<CallState>().unwrap(), state);
        }
    }
}
