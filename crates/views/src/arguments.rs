//! Whether arguments fit a tool, as its submission would find.

use redial_arguments::{Repairs, Schema};
use redial_proto::{ErrorClass, FieldError, Repair, ToolSpec};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

/// What a submission would make of arguments.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Checked {
    /// They fit, perhaps after repairs.
    pub valid: bool,
    /// The arguments as the tool would get them; absent if they do not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub arguments: Option<Box<RawValue>>,
    /// Lossless changes that would be made.
    pub repairs: Vec<Repair>,
    /// JSON pointers to properties that the schema does not declare.
    pub undeclared: Vec<String>,
    /// Why they do not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The broken rules.
    pub errors: Vec<FieldError>,
}

/// Checks the text of arguments against a registered tool. It takes processor time in proportion to the schema and the text, up to
/// about a second.
pub fn check_arguments(tool: &ToolSpec, json: &str) -> Checked {
    let repairs = if tool.repairs { Repairs::On } else { Repairs::Off };
    let schema = match Schema::compile(&tool.parameters) {
        Ok(schema) => schema,
        Err(error) => {
            return Checked {
                valid: false,
                arguments: None,
                repairs: Vec::new(),
                undeclared: Vec::new(),
                class: Some(ErrorClass::Configuration),
                message: Some(error.to_string()),
                errors: Vec::new(),
            };
        }
    };
    match schema.resolve_json(json, repairs) {
        Ok(done) => Checked {
            valid: true,
            arguments: RawValue::from_string(done.arguments.into_owned()).ok(),
            repairs: done.repairs,
            undeclared: done.undeclared,
            class: None,
            message: None,
            errors: Vec::new(),
        },
        Err(refusal) => Checked {
            valid: false,
            arguments: None,
            repairs: refusal.help.repairs,
            undeclared: Vec::new(),
            class: Some(refusal.class),
            message: Some(refusal.message),
            errors: refusal.details,
        },
    }
}
