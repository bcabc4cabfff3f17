//! A real model behind an OpenAI-compatible address, in place of the scripted ones.

use anyhow::Context;
use toml::{Table, Value};

/// A real model may run on a small machine.
const TIMEOUT: &str = "10m";
/// A small model may never stop by itself.
const MAX_TOKENS: i64 = 512;

/// Where the real model is.
#[derive(Clone, Debug)]
pub(crate) struct RealModel {
    /// Base URL, such as `http://127.0.0.1:8000/v1`.
    pub(crate) url: String,
    /// The model's name at its provider.
    pub(crate) model: String,
    /// The environment variable with the API key.
    pub(crate) key_env: Option<String>,
}

impl RealModel {
    /// A `models.toml` in which every name of the scripted file stands for this model.
    pub(crate) fn models_toml(&self, scripted: &str) -> anyhow::Result<String> {
        let scripted: Table = scripted.parse().context("models.toml")?;
        let names = scripted.get("models").and_then(Value::as_table).context("models.toml declares no models")?;
        let models: Table = names.keys().map(|name| (name.clone(), self.entry().into())).collect();
        Ok(toml::to_string(&Table::from_iter([("models".to_owned(), models.into())]))?)
    }

    fn entry(&self) -> Table {
        let fields = [
            ("provider", Some("openai")),
            ("base_url", Some(self.url.as_str())),
            ("model", Some(self.model.as_str())),
            ("key_env", self.key_env.as_deref()),
            ("timeout", Some(TIMEOUT)),
        ];
        let entry = |(field, value): (&str, Option<&str>)| Some((field.to_owned(), value?.into()));
        let mut entry: Table = fields.into_iter().filter_map(entry).collect();
        // Small servers handle one request at a time, some abort it when another one arrives, and some cannot stream
        // calls.
        entry.insert("concurrency".to_owned(), 1.into());
        entry.insert("stream".to_owned(), false.into());
        entry.insert("max_tokens".to_owned(), MAX_TOKENS.into());
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_model_replaces_every_scripted_one() {
        let model = RealModel { url: "http://x/v1".into(), model: "m".into(), key_env: Some("KEY".into()) };
        let scripted = include_str!("../models.toml");
        let replaced: Table = model.models_toml(scripted).unwrap().parse().unwrap();
        let scripted: Table = scripted.parse().unwrap();
        let names = |table: &Table| table["models"].as_table().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&replaced), names(&scripted));
        let clerk = replaced["models"]["clerk"].as_table().unwrap();
        let wanted = r#"
            provider = "openai"
            base_url = "http://x/v1"
            model = "m"
            key_env = "KEY"
            timeout = "10m"
            concurrency = 1
            stream = false
            max_tokens = 512
        "#;
        assert_eq!(clerk, &wanted.parse::<Table>().unwrap());
    }
}
