//! What a request gets that cannot be answered.

use redial_proto::CallId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// A problem document (RFC 9457), `application/problem+json`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProblemDocument {
    /// The page that explains the code.
    pub r#type: String,
    /// The code in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong, where, and what is allowed.
    pub detail: String,
    /// The address of the request.
    pub instance: String,
    /// Stable name of the error, for programs. A client must accept codes that it does not know.
    pub code: String,
    /// The id of the request, also in the header `x-request-id` and in the log.
    pub request_id: String,
    /// The broken rules, each with a JSON pointer into the arguments or the body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ProblemField>,
    /// The call that was refused; it is on record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// What a model gets as the result of that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub feedback: Option<Box<RawValue>>,
}

/// One broken rule.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProblemField {
    /// JSON pointer (RFC 6901); empty for the whole.
    pub pointer: String,
    /// The broken rule, by its JSON Schema keyword where it has one.
    pub rule: String,
    /// What was sent; absent if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Value>,
    /// What is allowed.
    pub allowed: String,
    /// A likely correction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
