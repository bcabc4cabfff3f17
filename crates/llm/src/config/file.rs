//! The format of `models.toml`. `docs/MODELS.md` explains each field.

use std::collections::BTreeMap;

use redial_proto::RetryBudget;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

use crate::profile::Overrides;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Provider {
    Openai,
    Anthropic,
    React,
    Script,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Chat {
    #[default]
    Openai,
    Anthropic,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) provider: Spanned<Provider>,
    #[serde(default)]
    pub(super) description: String,
    pub(super) model: Option<Spanned<String>>,
    pub(super) base_url: Option<Spanned<String>>,
    pub(super) key_env: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) insecure_http: bool,
    #[serde(default)]
    pub(super) headers: BTreeMap<Spanned<String>, Spanned<String>>,
    /// The chat interface under ReAct.
    pub(super) api: Option<Spanned<Chat>>,
    pub(super) stream: Option<Spanned<bool>>,
    pub(super) profile: Option<Spanned<String>>,
    pub(super) overrides: Option<Spanned<Overrides>>,
    pub(super) extra: Option<Spanned<Map<String, Value>>>,
    pub(super) max_tokens: Option<Spanned<u32>>,
    pub(super) temperature: Option<Spanned<f64>>,
    pub(super) input_price: Option<Spanned<f64>>,
    pub(super) output_price: Option<Spanned<f64>>,
    pub(super) timeout: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) retry: Retry,
    #[serde(default)]
    pub(super) retry_budget: RetryBudget,
    pub(super) concurrency: Option<Spanned<u32>>,
    pub(super) script: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Retry {
    pub(super) initial: Option<Spanned<String>>,
    pub(super) factor: Option<f64>,
    pub(super) cap: Option<Spanned<String>>,
    pub(super) max_attempts: Option<u32>,
    pub(super) deadline: Option<Spanned<String>>,
}
