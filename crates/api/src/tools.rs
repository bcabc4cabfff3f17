//! Tools and agents.

use redial_proto::{AgentView, ErrorClass, FieldError, Repair, ToolView, names};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

list! {
    /// A part of the tools.
    ToolPage {
        /// By name.
        tools: ToolView
    }
}

list! {
    /// A part of the agents.
    AgentPage {
        /// By name.
        agents: AgentView
    }
}

/// What a submission would make of arguments.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
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
    #[serde(default, deserialize_with = "names::known", skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The broken rules.
    pub errors: Vec<FieldError>,
}
