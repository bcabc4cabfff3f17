//! Requests for tests.

use redial_proto::{TaskId, ToolOffer, TurnRequest};
use serde_json::json;

/// A request without messages and tools.
pub(crate) fn request() -> TurnRequest {
    serde_json::from_value(json!({"task": TaskId::generate(), "turn": 1, "messages": []})).unwrap()
}

/// A tool with one argument.
pub(crate) fn tool(name: &str) -> ToolOffer {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    serde_json::from_value(json!({"name": name, "description": "The weather of a city.", "parameters": parameters}))
        .unwrap()
}
