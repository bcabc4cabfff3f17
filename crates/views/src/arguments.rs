//! Whether arguments fit a tool, as its submission would find.

use redial_api::Checked;
use redial_arguments::{Repairs, Schema};
use redial_proto::{ErrorClass, ToolSpec};
use serde_json::value::RawValue;

/// Checks the text of arguments against a registered tool. It takes processor time in proportion to the schema and the text, up to
/// about a second.
pub fn check_arguments(tool: &ToolSpec, json: &str) -> Checked {
    let repairs = if tool.repairs { Repairs::On } else { Repairs::Off };
    let schema = match Schema::compile(&tool.parameters) {
        Ok(schema) => schema,
        Err(error) => {
            let (class, message) = (Some(ErrorClass::Configuration), Some(error.to_string()));
            return Checked { class, message, ..Checked::default() };
        }
    };
    match schema.resolve_json(json, repairs) {
        Ok(done) => Checked {
            valid: true,
            arguments: RawValue::from_string(done.arguments.into_owned()).ok(),
            repairs: done.repairs,
            undeclared: done.undeclared,
            ..Checked::default()
        },
        Err(refusal) => Checked {
            repairs: refusal.help.repairs,
            class: Some(refusal.class),
            message: Some(refusal.message),
            errors: refusal.details,
            ..Checked::default()
        },
    }
}
