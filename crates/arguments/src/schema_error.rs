//! What is wrong with a schema.

use jsonschema::ReferencingError;
use serde_json::Value;

use crate::pointer;

/// A schema that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("schema{}: {message}", if path.is_empty() { String::new() } else { format!(" at {path}") })]
pub struct SchemaError {
    /// JSON pointer into the schema; empty for the whole.
    pub path: String,
    /// What is wrong at that path, and what is allowed.
    pub message: String,
}

impl SchemaError {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }

    /// Reports that the reference at `path` does not lead into the schema.
    pub(crate) fn outside(path: impl Into<String>, reason: &str) -> Self {
        Self::new(path, format!("{reason}; only references into the schema itself are allowed"))
    }

    /// Reports that some reference of the schema cannot be resolved.
    pub(crate) fn unresolved(schema: &Value, reason: &ReferencingError) -> Self {
        Self::outside(unresolved(schema, schema, "").unwrap_or_default(), &reason.to_string())
    }
}

/// Finds the path of the first reference that leads outside the schema or to nothing.
fn unresolved(root: &Value, part: &Value, path: &str) -> Option<String> {
    match part {
        Value::Object(object) => object.iter().find_map(|(key, value)| {
            let path = pointer::join(path, key);
            match (key.as_str(), value) {
                ("$ref" | "$dynamicRef", Value::String(target)) => {
                    let found = target.strip_prefix('#').is_some_and(|pointer| root.pointer(pointer).is_some());
                    (!found).then_some(path)
                }
                ("const" | "enum" | "default" | "examples", _) => None,
                _ => unresolved(root, value, &path),
            }
        }),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| unresolved(root, item, &format!("{path}/{index}")))
        }
        _ => None,
    }
}
