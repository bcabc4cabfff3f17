//! Who plays the models: scripts, or a real model behind an OpenAI-compatible address.

use anyhow::Context;
use toml::{Table, Value};

/// Models that write their calls as text; a real model gets the same instructions.
const IN_WORDS: [&str; 1] = ["scout"];
/// A real model may run on a small machine.
const TIMEOUT: &str = "10m";
/// A small model may not know when to stop.
const MOST_TOKENS: i64 = 512;

/// A real model.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// Base URL, such as `http://127.0.0.1:8000/v1`.
    pub(crate) url: String,
    /// The model, by the provider's own name.
    pub(crate) model: String,
    /// The environment variable that holds the API key.
    pub(crate) key_env: Option<String>,
}

impl Endpoint {
    /// A `models.toml` with the names of the scripted one, each of them this model.
    pub(crate) fn plays(&self, scripted: &str) -> anyhow::Result<String> {
        let scripted: Table = scripted.parse().context("models.toml")?;
        let names = scripted.get("models").and_then(Value::as_table).context("models.toml declares no models")?;
        let models: Table = names.keys().map(|name| (name.clone(), self.entry(name).into())).collect();
        Ok(toml::to_string(&Table::from_iter([("models".to_owned(), models.into())]))?)
    }

    fn entry(&self, name: &str) -> Table {
        let provider = if IN_WORDS.contains(&name) { "react" } else { "openai" };
        let fields = [
            ("provider", Some(provider)),
            ("base_url", Some(self.url.as_str())),
            ("model", Some(self.model.as_str())),
            ("key_env", self.key_env.as_deref()),
            ("timeout", Some(TIMEOUT)),
        ];
        let entry = |(field, value): (&str, Option<&str>)| Some((field.to_owned(), value?.into()));
        let mut entry: Table = fields.into_iter().filter_map(entry).collect();
        // Small servers answer one request at a time, some break it off when another one comes, and some cannot stream
        // calls.
        entry.insert("concurrency".to_owned(), 1.into());
        entry.insert("stream".to_owned(), false.into());
        entry.insert("max_tokens".to_owned(), MOST_TOKENS.into());
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_model_plays_every_part() {
        let endpoint = Endpoint { url: "http://x/v1".into(), model: "m".into(), key_env: Some("KEY".into()) };
        let scripted = include_str!("../models.toml");
        let played: Table = endpoint.plays(scripted).unwrap().parse().unwrap();
        let scripted: Table = scripted.parse().unwrap();
        let names = |table: &Table| table["models"].as_table().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&played), names(&scripted));
        assert_eq!(played["models"]["scout"]["provider"].as_str(), Some("react"));
        let clerk = played["models"]["clerk"].as_table().unwrap();
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
