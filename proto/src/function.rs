//! Functions of the client: tools that whoever submits a task serves.
//!
//! When a model calls one, the call waits in state [`crate::CallState::ClientWait`] until the client answers it, or until
//! its time is over. No worker ever runs it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{CallId, CallState, ErrorClass, limits, tool::any_object, tool::check_name, turn::model_name};

/// The pool of calls that a client serves. It is no name that a worker's pool may have.
pub const POOL: &str = "@client";

/// How long a client may take to answer if nobody says otherwise, in ms: 10 minutes.
pub const DEFAULT_TIMEOUT_MS: u64 = 10 * 60 * 1000;
/// The shortest time, in ms.
const MIN_TIMEOUT_MS: u64 = 1000;
/// The longest time, in ms: 24 hours.
const MAX_TIMEOUT_MS: u64 = 24 * 3600 * 1000;

/// Functions of one agent.
pub const MAX_FUNCTIONS: usize = 128;
/// Bytes of JSON that all functions of an agent may take together: each request to its model holds them.
pub const MAX_BYTES: usize = 128 * 1024;

/// A function that the client serves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FunctionSpec {
    /// Unique among the tools and functions of the agent: letters, digits, `_` and `-`, at most 64 characters.
    pub name: String,
    /// What it does, for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// JSON Schema (draft 2020-12) of the arguments, which are always an object.
    #[serde(default = "any_object")]
    pub parameters: Value,
}

/// Says which functions are wrong, and what is allowed. The schemas themselves are compiled elsewhere.
pub fn mistakes(functions: &[FunctionSpec]) -> Vec<String> {
    let mut found = Vec::new();
    if functions.len() > MAX_FUNCTIONS {
        found.push(format!("functions holds {} entries; allowed: {MAX_FUNCTIONS}", functions.len()));
    }
    let bytes = serde_json::to_string(functions).map_or(0, |text| text.len());
    if bytes > MAX_BYTES {
        found.push(format!("functions take {bytes} bytes of JSON; allowed: {MAX_BYTES}"));
    }
    for (n, function) in functions.iter().enumerate() {
        found.extend(check_name("functions: the name", &function.name).err());
        if model_name(&function.name).is_some() {
            found.push(format!(
                "functions: {:?} begins like the name of a model; allowed: any other name",
                function.name
            ));
        }
        let shown = limits::shorten(&function.name, 64);
        if functions[..n].iter().any(|other| other.name == function.name) {
            found.push(format!("functions: {shown:?} is there twice; allowed: each name once"));
        }
        if !function.parameters.is_object() {
            found.push(format!("functions: {shown:?}: parameters: a JSON Schema object is needed"));
        }
    }
    found
}

/// Checks the time that a client has to answer.
pub fn check_timeout(timeout_ms: u64) -> Result<(), String> {
    if (MIN_TIMEOUT_MS..=MAX_TIMEOUT_MS).contains(&timeout_ms) {
        return Ok(());
    }
    Err(format!("function_timeout_ms is {timeout_ms}; allowed: {MIN_TIMEOUT_MS} (1 s) to {MAX_TIMEOUT_MS} (24 h)"))
}

/// Answers a call of a function. Sent as `calls.answer`. Either `output` or `error` is needed. The same answer again gets
/// the same reply; another one is refused, because the first one counts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerRequest {
    /// The call.
    pub call: CallId,
    /// The result: any JSON, `null` included; at most 16 MiB.
    #[serde(default, deserialize_with = "crate::fields::present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub output: Option<Box<RawValue>>,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FunctionError>,
}

/// Why a function has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FunctionError {
    /// The reason, for the model; at most 4,096 bytes are kept.
    pub message: String,
    /// Its class, one of [`ANSWER_CLASSES`]. Default `tool_failed`.
    #[serde(default = "tool_failed")]
    pub class: ErrorClass,
}

const fn tool_failed() -> ErrorClass {
    ErrorClass::ToolFailed
}

/// The classes that an answer may name: no call of a function is tried again, so none that stands for that.
pub const ANSWER_CLASSES: [ErrorClass; 6] = [
    ErrorClass::InvalidArguments,
    ErrorClass::BusinessRule,
    ErrorClass::Auth,
    ErrorClass::Configuration,
    ErrorClass::Rejected,
    ErrorClass::ToolFailed,
];

/// The answer to [`AnswerRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerReply {
    /// The call's state now: `succeeded` or `failed`.
    #[serde(deserialize_with = "crate::names::shown")]
    pub state: CallState,
}

/// Fails if an answer has more than `most` bytes, or nests deeper than results may; the error says what is allowed.
pub fn check_output(output: &str, most: usize) -> Result<(), String> {
    let (bytes, depth) = (output.len(), limits::json_depth(output));
    match () {
        () if bytes > most => Err(format!("output takes {bytes} bytes; allowed: {most}")),
        () if depth > limits::MAX_DEPTH => Err(format!("output nests {depth} deep; allowed: {}", limits::MAX_DEPTH)),
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_functions_are_named_with_what_is_allowed() {
        let named =
            |name: &str| FunctionSpec { name: name.to_owned(), description: String::new(), parameters: any_object() };
        assert_eq!(mistakes(&[named("ask_user"), named("open_file")]), Vec::<String>::new());
        let twice = mistakes(&[named("ask_user"), named("ask_user"), named("a.b")]);
        assert_eq!(twice.len(), 2, "{twice:?}");
        assert!(twice[0].contains("\"ask_user\" is there twice") && twice[1].contains("\"a.b\""), "{twice:?}");
        let many = mistakes(&vec![named("f"); MAX_FUNCTIONS + 1]);
        assert!(many[0].contains("129 entries; allowed: 128"), "{many:?}");
        let large = FunctionSpec { description: "x".repeat(MAX_BYTES), ..named("f") };
        assert!(mistakes(&[large])[0].contains("allowed: 131072"));
        let schema = FunctionSpec { parameters: serde_json::json!([]), ..named("f") };
        assert!(mistakes(&[schema])[0].contains("parameters"));
        assert!(check_timeout(999).unwrap_err().contains("allowed: 1000"));
        assert!(check_timeout(MAX_TIMEOUT_MS + 1).is_err());
        assert_eq!((check_timeout(1000), check_timeout(DEFAULT_TIMEOUT_MS)), (Ok(()), Ok(())));
        assert!(check_name("pool", POOL).is_err(), "no worker's pool may have this name");
    }

    #[test]
    fn an_answer_distinguishes_null_from_nothing() {
        let call = CallId::generate();
        let read = |rest: &str| serde_json::from_str::<AnswerRequest>(&format!("{{\"call\":\"{call}\"{rest}}}"));
        assert_eq!(read(",\"output\":null").unwrap().output.unwrap().get(), "null");
        assert!(read("").unwrap().output.is_none());
        assert_eq!(read(",\"error\":{\"message\":\"no\"}").unwrap().error.unwrap().class, ErrorClass::ToolFailed);
    }
}
