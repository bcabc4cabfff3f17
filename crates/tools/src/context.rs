//! What a tool can see of the attempt that it runs in.

use std::{fmt, sync::Arc, time::Duration};

use redial_proto::{CallId, Delta, Grant, TaskId, Tenant};
use redial_redaction::Secrets;

use crate::memory::OutputMemory;

/// One attempt of one call.
///
/// A tool that takes it as its first argument can pass the idempotency key to the service that it changes:
///
/// ```
/// use redial_proto::ToolEffect;
/// use redial_tools::{Context, Tool};
/// use serde_json::{Map, Value};
///
/// async fn pay(context: Context, _: Map<String, Value>) -> String {
///     format!("attempt {} pays with key {}", context.attempt, context.idempotency_key)
/// }
///
/// # futures_util::FutureExt::now_or_never(async {
/// let tool = Tool::new("pay", pay).effect(ToolEffect::Keyed);
/// let context = Context::new("pay");
/// let key = context.idempotency_key.clone();
/// let output = tool.run(context, serde_json::value::to_raw_value(&serde_json::json!({})).unwrap()).await.unwrap();
/// assert_eq!(output.get(), format!("\"attempt 1 pays with key {key}\""));
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Context {
    /// The call.
    pub call: CallId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The tool's name.
    pub tool: String,
    /// The same for every attempt of the call and for its redrives: pass it to the services that the tool changes.
    pub idempotency_key: String,
    /// The tenant that the call belongs to. A tool that keeps data keeps it apart by this: all tenants' calls come to it.
    pub tenant: String,
    /// The conversation that the call belongs to.
    pub conversation: Option<String>,
    /// The task that the call belongs to.
    pub task: Option<TaskId>,
    /// How long the attempt may take. The worker drops the attempt's future when the time is over.
    pub timeout: Duration,
    /// W3C trace context, to pass on to other services.
    pub traceparent: Option<String>,
    /// The receivers of [`Context::delta`].
    pub watchers: Watchers,
    /// The memory for a large output.
    pub memory: OutputMemory,
    /// What the result and errors must not contain. [`crate::Tool::run`] sets it, and removes them from whatever the handler
    /// returns; a handler that cuts a text removes them before, so that no part of one is left.
    pub secrets: Secrets,
}

impl Context {
    /// The first attempt of a made-up call of the tenant `default`, for tests of a tool. The idempotency key is the call's id, as it is for calls
    /// without a key.
    pub fn new(tool: impl Into<String>) -> Self {
        let call = CallId::generate();
        Self {
            call,
            attempt: 1,
            tool: tool.into(),
            idempotency_key: call.to_string(),
            tenant: Tenant::default().to_string(),
            conversation: None,
            task: None,
            timeout: Duration::from_secs(30),
            traceparent: None,
            watchers: Watchers::default(),
            memory: OutputMemory::default(),
            secrets: Secrets::default(),
        }
    }

    /// Sends watchers a piece of a model's answer while it is being written. Never waits, and delivery is not guaranteed:
    /// pieces without a receiver, or too many at once, are lost. Only the attempt's result is kept.
    pub fn delta(&self, delta: Delta) {
        (self.watchers.0)(delta);
    }
}

impl From<&Grant> for Context {
    fn from(grant: &Grant) -> Self {
        Self {
            call: grant.call,
            attempt: grant.attempt,
            tool: grant.tool.clone(),
            idempotency_key: grant.idempotency_key.clone(),
            tenant: grant.tenant.clone(),
            conversation: grant.conversation.clone(),
            task: grant.task,
            timeout: Duration::from_millis(grant.timeout_ms),
            traceparent: grant.traceparent.clone(),
            watchers: Watchers::default(),
            memory: OutputMemory::default(),
            secrets: Secrets::default(),
        }
    }
}

/// The receivers of a model's answer while it is being written; none by default.
#[derive(Clone)]
pub struct Watchers(Arc<dyn Fn(Delta) + Send + Sync>);

impl Watchers {
    /// Watchers that receive pieces through this function, which must not block.
    pub fn new(send: impl Fn(Delta) + Send + Sync + 'static) -> Self {
        Self(Arc::new(send))
    }
}

impl Default for Watchers {
    fn default() -> Self {
        Self::new(drop)
    }
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watchers")
    }
}
