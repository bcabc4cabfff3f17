//! The format of a script. `docs/MODELS.md` explains each field.

use redial_proto::{ErrorClass, Finish};
use serde::Deserialize;
use serde_json::Value;

use super::when::When;

/// The style of all texts of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Style {
    React,
}

/// The parser for a raw body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BodyFormat {
    Openai,
    Anthropic,
    React,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) when: When,
    pub(super) times: Option<u32>,
    pub(super) text: Option<String>,
    pub(super) calls: Option<Vec<CallEntry>>,
    pub(super) error: Option<ErrorEntry>,
    pub(super) body: Option<Value>,
    pub(super) api: Option<BodyFormat>,
    pub(super) thought: Option<String>,
    pub(super) finish: Option<Finish>,
    pub(super) usage: Option<UsageEntry>,
    pub(super) delay: Option<String>,
    pub(super) chunks: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallEntry {
    pub(super) name: String,
    /// A table, or any text.
    pub(super) arguments: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorEntry {
    pub(super) class: Option<ErrorClass>,
    pub(super) status: Option<u16>,
    pub(super) message: Option<String>,
    pub(super) retry_after: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UsageEntry {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
}
