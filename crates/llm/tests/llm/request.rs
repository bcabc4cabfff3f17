//! Requests and models for tests.

use std::fs;

use redial_llm::{Model, load_with};
use redial_proto::{TaskId, ToolOffer, TurnRequest};
use serde_json::json;

/// Makes a request without messages and tools.
pub(crate) fn request() -> TurnRequest {
    serde_json::from_value(json!({"task": TaskId::generate(), "turn": 1, "messages": []})).unwrap()
}

/// Makes a tool with one argument.
pub(crate) fn tool(name: &str) -> ToolOffer {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    serde_json::from_value(json!({"name": name, "description": "The weather of a city.", "parameters": parameters}))
        .unwrap()
}

/// The environment, as the loading of models reads it.
pub(crate) type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Loads a `models.toml` beside a script `rules.toml`; an error names the files without their folder.
pub(crate) fn load(text: &str, script: &str, variable: Variable<'_>) -> Result<Vec<Model>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("models.toml");
    fs::write(&path, text).unwrap();
    fs::write(folder.path().join("rules.toml"), script).unwrap();
    load_with(&path, variable).map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
}
