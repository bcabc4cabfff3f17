//! A real model behind an OpenAI-compatible address, in place of the scripted ones.

use std::time::Duration;

use anyhow::Context;
use toml::{Table, Value};

/// A request may take this part of the time of a scenario, so that one that hangs leaves time for another try.
const PART: u32 = 3;
/// Requests for one turn of a model.
const ATTEMPTS: i64 = 2;
/// Turns and tool calls of a task, for a model that never comes to an end.
const TURNS: i64 = 8;
const TOOL_CALLS: i64 = 20;
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
    /// How long a scenario may take.
    pub(crate) limit: Duration,
}

impl RealModel {
    /// A `models.toml` in which every name of the scripted file stands for this model.
    pub(crate) fn models_toml(&self, scripted: &str) -> anyhow::Result<String> {
        let scripted: Table = scripted.parse().context("models.toml")?;
        let names = scripted.get("models").and_then(Value::as_table).context("models.toml declares no models")?;
        let models: Table = names.keys().map(|name| (name.clone(), self.entry().into())).collect();
        Ok(toml::to_string(&Table::from_iter([("models".to_owned(), models.into())]))?)
    }

    /// An `agents.toml` with limits for every agent.
    pub(crate) fn agents_toml(&self, agents: &str) -> anyhow::Result<String> {
        let mut file: Table = agents.parse().context("agents.toml")?;
        let agents = file.get_mut("agents").and_then(Value::as_table_mut).context("agents.toml declares no agents")?;
        let seconds = i64::try_from(self.limit.as_secs()).unwrap_or(i64::MAX);
        for agent in agents.iter_mut().filter_map(|(_, agent)| agent.as_table_mut()) {
            let budgets = [("seconds", seconds), ("turns", TURNS), ("tool_calls", TOOL_CALLS)];
            let budgets: Table = budgets.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
            agent.insert("budgets".to_owned(), budgets.into());
        }
        Ok(toml::to_string(&file)?)
    }

    fn entry(&self) -> Table {
        let timeout = format!("{}ms", (self.limit / PART).as_millis());
        let fields = [
            ("provider", Some("openai")),
            ("base_url", Some(self.url.as_str())),
            ("model", Some(self.model.as_str())),
            ("key_env", self.key_env.as_deref()),
            ("timeout", Some(timeout.as_str())),
        ];
        let entry = |(field, value): (&str, Option<&str>)| Some((field.to_owned(), value?.into()));
        let mut entry: Table = fields.into_iter().filter_map(entry).collect();
        // Small servers handle one request at a time, some abort it when another one arrives, and some cannot stream
        // calls.
        entry.insert("concurrency".to_owned(), 1.into());
        entry.insert("stream".to_owned(), false.into());
        entry.insert("max_tokens".to_owned(), MAX_TOKENS.into());
        let retry = Table::from_iter([("max_attempts".to_owned(), ATTEMPTS.into())]);
        entry.insert("retry".to_owned(), retry.into());
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_model_replaces_every_scripted_one() {
        let model = RealModel {
            url: "http://x/v1".into(),
            model: "m".into(),
            key_env: Some("KEY".into()),
            limit: Duration::from_secs(30),
        };
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
            timeout = "10000ms"
            concurrency = 1
            stream = false
            max_tokens = 512
            retry = { max_attempts = 2 }
        "#;
        assert_eq!(clerk, &wanted.parse::<Table>().unwrap());
    }
    #[test]
    fn agents_get_limits_and_stay_valid() {
        let model = RealModel { url: "u".into(), model: "m".into(), key_env: None, limit: Duration::from_secs(30) };
        let agents: Table = model.agents_toml(include_str!("../agents.toml")).unwrap().parse().unwrap();
        for (name, agent) in agents["agents"].as_table().unwrap() {
            let spec: redial_proto::AgentSpec = agent.clone().try_into().unwrap();
            assert_eq!(spec.check(), Ok(()), "{name}");
            assert_eq!((spec.budgets.seconds, spec.budgets.turns), (30, 8), "{name}");
        }
    }
}
