//! The states of a call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{VariantArray, VariantNames};

use crate::names::named;

/// The state of a call. Terminal states never change; a trigger of the database enforces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, VariantArray, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CallState {
    /// Waits for a worker to claim it.
    Ready,
    /// A worker holds it under a lease.
    Running,
    /// An attempt failed; the next one is due at `wake_at`.
    RetryWait,
    /// A function of the client: its client was asked, and has not answered.
    ClientWait,
    /// A result is on record.
    Succeeded,
    /// Ended with an error.
    Failed,
    /// An `unsafe` tool may or may not have done its work; an operator must inspect it.
    Unknown,
    /// The user cancelled it.
    Cancelled,
    /// Never ran: bad arguments, unknown tool.
    Refused,
    /// A state that this version does not know: a newer one wrote it. Only views show it; it is never written or read.
    #[serde(skip_deserializing)]
    Other,
}

named!(CallState, "a state of a call", other);

impl CallState {
    /// True if nothing can happen to the call any more.
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Ready | Self::Running | Self::RetryWait | Self::ClientWait | Self::Other)
    }
}
