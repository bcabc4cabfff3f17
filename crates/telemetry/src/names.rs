//! Names of exported attributes that are set from code; the fields of a span are literals where the span is made.
//!
//! A name is that of OpenTelemetry's GenAI conventions where they have one; names of retries, queues and leases start with
//! `redial.`.

pub const TOOL_NAME: &str = "gen_ai.tool.name";
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

pub const CONSUMER: &str = "redial.consumer";
pub const POOL: &str = "redial.pool";
/// Attribute: state in which a call ended.
pub const CALL_STATE: &str = "redial.call.state";
pub const SUBMIT_STATUS: &str = "redial.submit.status";
pub const TASK_CODE: &str = "redial.task.code";
/// Attribute: what was set aside.
pub const SET_ASIDE: &str = "redial.set_aside.kind";
/// Attribute: what a batch consists of.
pub const BATCH_KIND: &str = "redial.batch.kind";

/// Value of [`TOOL_NAME`] in metrics for tools that are not registered: names from outside must not become time series.
pub const OTHER_TOOL: &str = "_other";
/// Value of [`TOOL_NAME`] in metrics for all functions of clients.
pub const CLIENT_FUNCTION: &str = "_client";

pub const SCOPE: &str = "redial";
