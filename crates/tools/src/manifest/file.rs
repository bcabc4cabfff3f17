//! The format of a manifest. `docs/TOOLS.md` explains each field.

use std::collections::BTreeMap;

use redial_proto::{RetryBudget, ToolEffect};
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) effect: ToolEffect,
    pub(super) pool: Option<Spanned<String>>,
    pub(super) timeout: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) retry: Retry,
    #[serde(default)]
    pub(super) retry_budget: RetryBudget,
    pub(super) concurrency: Option<Spanned<u32>>,
    #[serde(default)]
    pub(super) polling: bool,
    #[serde(default)]
    pub(super) sequential: bool,
    pub(super) repairs: Option<bool>,
    pub(super) parameters: Option<Spanned<Value>>,
    pub(super) parameters_file: Option<Spanned<String>>,
    pub(super) http: Option<Spanned<Http>>,
    pub(super) command: Option<Spanned<Command>>,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the words of the file, as in models.toml")]
pub(super) struct Http {
    pub(super) method: Spanned<String>,
    pub(super) url: Spanned<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<Spanned<String>, Spanned<String>>,
    pub(super) body: Option<Spanned<Value>>,
    pub(super) connect_timeout: Option<Spanned<String>>,
    /// Arguments whose values may contain `/` in a path segment, where it is sent as `%2F`.
    #[serde(default)]
    pub(super) allow_slash: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) error_text_to_model: bool,
    #[serde(default)]
    pub(super) insecure_http: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Command {
    pub(super) argv: Spanned<Vec<Spanned<String>>>,
    /// Arguments whose values may begin with `-`.
    #[serde(default)]
    pub(super) allow_leading_dash: Vec<Spanned<String>>,
    pub(super) folder: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) inherit: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) env: BTreeMap<Spanned<String>, Spanned<String>>,
    /// A class, or a table with `class` and `effect_possible`.
    #[serde(default)]
    pub(super) exit_codes: BTreeMap<Spanned<String>, Spanned<Value>>,
    #[serde(default)]
    pub(super) stderr_to_model: bool,
}
