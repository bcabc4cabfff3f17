//! Names that leave the process: spans, attributes, instruments.
//!
//! Where OpenTelemetry's GenAI conventions have a name, it is that one; retries, queues and leases have none there and
//! start with `redial.`. The spans of attempts are written once for all services, in [`crate::execute_tool`] and
//! [`crate::chat`].

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
/// Attribute: the model, by the name that agents use.
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
/// Attribute: the model that answered, by the provider's own name.
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
/// Attribute: why the model stopped; a list, here always of one.
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// Attribute: tokens that the model read.
pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Attribute: tokens that the model wrote.
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Attribute: the error class; absent when there is no error.
pub const ERROR_TYPE: &str = "error.type";

/// Attribute: the call's id, where it is no tool's.
pub const CALL_ID: &str = "redial.call.id";
/// Attribute: number of the attempt, from 1.
pub const ATTEMPT: &str = "redial.attempt";
/// Attribute: the pool of workers.
pub const POOL: &str = "redial.pool";
/// Attribute: state in which a call ended.
pub const CALL_STATE: &str = "redial.call.state";
/// Attribute: what became of a submission.
pub const SUBMIT_STATUS: &str = "redial.submit.status";
/// Attribute: why a task ended.
pub const TASK_CODE: &str = "redial.task.code";
/// Attribute: what a batch consists of.
pub const BATCH_KIND: &str = "redial.batch.kind";

/// Value of [`TOOL_NAME`] in metrics for tools that nobody registered: names from outside must not become time series.
pub const OTHER_TOOL: &str = "_other";

/// Name of the meter and the tracer.
pub const SCOPE: &str = "redial";
