//! Names that leave the process: spans, attributes, instruments.
//!
//! Where OpenTelemetry's GenAI conventions have a name, it is that one; retries, queues and leases have none there and
//! start with `redial.`. The span of an attempt is written once for all services, in [`crate::execute_tool`].

/// Attribute: what the span is about, `execute_tool` or `chat`.
pub const OPERATION_NAME: &str = "gen_ai.operation.name";
/// Attribute: the tool's name.
pub const TOOL_NAME: &str = "gen_ai.tool.name";
/// Attribute: the call's id.
pub const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
/// Attribute: `function` for every tool that Redial runs.
pub const TOOL_TYPE: &str = "gen_ai.tool.type";
/// Attribute: the caller's id of the conversation.
pub const CONVERSATION_ID: &str = "gen_ai.conversation.id";
/// Attribute: the error class; absent when there is no error.
pub const ERROR_TYPE: &str = "error.type";

/// Attribute: number of the attempt, from 1.
pub const ATTEMPT: &str = "redial.attempt";
/// Attribute: the pool of workers.
pub const POOL: &str = "redial.pool";
/// Attribute: state in which a call ended.
pub const CALL_STATE: &str = "redial.call.state";
/// Attribute: what became of a submission.
pub const SUBMIT_STATUS: &str = "redial.submit.status";
/// Attribute: what a batch consists of.
pub const BATCH_KIND: &str = "redial.batch.kind";

/// Value of [`TOOL_NAME`] in metrics for tools that nobody announced: names from outside must not become time series.
pub const OTHER_TOOL: &str = "_other";

/// Name of the meter and the tracer.
pub const SCOPE: &str = "redial";
