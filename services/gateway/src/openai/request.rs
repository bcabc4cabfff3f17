//! The parts of a request that `/v1/responses` and `/v1/chat/completions` have in common.

use std::collections::BTreeMap;

use redial_proto::{FunctionSpec, limits::shorten, tool::any_object};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use super::{OWN_NOTE, wrong};
use crate::problem::Problem;

/// Notes of a client; Redial keeps two of its own.
const NOTES: usize = redial_proto::limits::MAX_METADATA - 2;

/// Reads the functions that the client serves. Each is in the entry itself, or, for chat completions, within it.
pub(crate) fn functions(tools: &[Value]) -> Result<Vec<FunctionSpec>, Problem> {
    let function = |(n, tool): (usize, &Value)| {
        let kind = tool["type"].as_str().unwrap_or_default();
        let param = format!("tools[{n}]");
        if kind != "function" {
            let message = format!(
                "tools[{n}].type is {:?}; allowed: function. Redial's own tools belong to the agent",
                shorten(kind, 60)
            );
            return Err(wrong(&param, message));
        }
        let function = if tool["function"].is_object() { &tool["function"] } else { tool };
        let name = function["name"].as_str().ok_or_else(|| wrong(&param, format!("tools[{n}] has no name")))?;
        let parameters = match &function["parameters"] {
            Value::Null => any_object(),
            parameters => parameters.clone(),
        };
        let description = function["description"].as_str().unwrap_or_default().to_owned();
        Ok(FunctionSpec { name: name.to_owned(), description, parameters })
    };
    tools.iter().enumerate().map(function).collect()
}

/// Refuses all but `auto`: a model decides by itself what it calls.
pub(crate) fn check_tool_choice(choice: Option<&Value>) -> Result<(), Problem> {
    match choice {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(choice)) if choice == "auto" => Ok(()),
        Some(choice) => {
            let message = format!("tool_choice is {}; allowed: \"auto\"", shorten(&choice.to_string(), 100));
            Err(wrong("tool_choice", message))
        }
    }
}

/// Refuses all but text: a client that was promised JSON of a schema would read what nobody checked.
pub(crate) fn check_format(param: &str, format: Option<&Value>) -> Result<(), Problem> {
    let kind = format.filter(|format| !format.is_null()).map(|format| format["type"].as_str().unwrap_or("absent"));
    match kind {
        None | Some("text") => Ok(()),
        Some(kind) => Err(wrong(param, format!("{param}.type is {:?}; allowed: text", shorten(kind, 60)))),
    }
}

pub(crate) fn metadata(notes: Option<Map<String, Value>>) -> Result<BTreeMap<String, String>, Problem> {
    let notes = notes.unwrap_or_default();
    if notes.len() > NOTES {
        return Err(wrong("metadata", format!("metadata holds {} entries; allowed: {NOTES}", notes.len())));
    }
    let note = |(key, value): (String, Value)| match value {
        Value::String(text) if !key.starts_with(OWN_NOTE) => Ok((key, text)),
        Value::String(_) => {
            let message = format!("metadata: keys that begin with {OWN_NOTE:?} are Redial's own; allowed: any other");
            Err(wrong("metadata", message))
        }
        _ => Err(wrong("metadata", format!("metadata: {:?} is no text; allowed: texts", shorten(&key, 64)))),
    };
    notes.into_iter().map(note).collect()
}

/// Returns the text of a content: a text, or a list of parts that are texts.
pub(crate) fn text(param: &str, content: &Value) -> Result<String, Problem> {
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Null => Ok(String::new()),
        Value::Array(parts) => {
            let text = |part: &Value| match (part["type"].as_str(), part["text"].as_str()) {
                (Some("input_text" | "output_text" | "text"), Some(text)) => Ok(text.to_owned()),
                (kind, _) => {
                    let shown = shorten(kind.unwrap_or("absent"), 60);
                    Err(wrong(param, format!("{param}: a part has the type {shown}; allowed: text")))
                }
            };
            Ok(parts.iter().map(text).collect::<Result<Vec<_>, _>>()?.join("\n"))
        }
        _ => Err(wrong(param, format!("{param}: a text or a list of parts is needed"))),
    }
}

/// Returns an answer of a function as JSON, byte for byte: an object or a list as it is, everything else as a text.
pub(crate) fn output(text: &str) -> Box<RawValue> {
    match RawValue::from_string(text.trim().to_owned()) {
        Ok(json) if json.get().starts_with(['{', '[']) => json,
        _ => to_raw_value(text).unwrap_or_else(|_| RawValue::NULL.to_owned()),
    }
}
