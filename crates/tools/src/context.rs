//! What a tool may know about the attempt that it runs in.

use std::time::Duration;

use redial_proto::{CallId, Grant};

/// One attempt of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The call.
    pub call: CallId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The tool's name.
    pub tool: String,
    /// The same for every attempt of the call, and for its redrives: hand it to whatever the tool changes.
    pub idempotency_key: String,
    /// The conversation that the call belongs to.
    pub conversation: Option<String>,
    /// How long the attempt may take. Whoever runs the tool drops its future when the time is over.
    pub timeout: Duration,
    /// W3C trace context, to hand on to other services.
    pub traceparent: Option<String>,
}

impl From<&Grant> for Context {
    fn from(grant: &Grant) -> Self {
        Self {
            call: grant.call,
            attempt: grant.attempt,
            tool: grant.tool.clone(),
            idempotency_key: grant.idempotency_key.clone(),
            conversation: grant.conversation.clone(),
            timeout: Duration::from_millis(grant.timeout_ms),
            traceparent: grant.traceparent.clone(),
        }
    }
}
