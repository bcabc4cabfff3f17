//! Reads an agent from a file that has the fields of a table of `agents.toml`.

use std::{fs, path::Path};

use redial_engine::feedback::check_templates;
use redial_files::{Position, did_you_mean, json_mistake, position_of};
use redial_proto::{AgentSpec, ApiError, Code};
use serde_json::{Map, Value};

const FIELDS: [&str; 17] = [
    "model",
    "fallback_model",
    "system",
    "tools",
    "functions",
    "function_timeout_ms",
    "policy",
    "max_corrections",
    "fallback_after",
    "cut_off",
    "budgets",
    "language",
    "context_tokens",
    "result_bytes",
    "max_tokens",
    "temperature",
    "templates",
];

/// Reads and checks the file. The error has a line for each mistake, with the file and the position in it.
pub(super) fn read(file: &Path) -> Result<AgentSpec, ApiError> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|error| {
        let message = format!("--agent-file {name}: {error}; allowed: a file with the fields of one agent");
        ApiError::new(Code::InvalidValue, message)
    })?;
    let json = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    parse(&name, &text, json).map_err(|mistakes| ApiError::new(Code::InvalidAgent, mistakes.join("\n")))
}

fn parse(file: &str, text: &str, json: bool) -> Result<AgentSpec, Vec<String>> {
    if json {
        return from_json(text).map_err(|mistakes| {
            let line = |(position, message): (Option<Position>, String)| {
                let position = position.map(|position| format!(":{position}")).unwrap_or_default();
                format!("{file}{position}: {message}")
            };
            mistakes.into_iter().map(line).collect()
        });
    }
    if toml::from_str::<toml::Table>(text).is_ok_and(|table| table.contains_key("agents")) {
        return Err(vec![format!("{file}: {BY_NAME}")]);
    }
    redial_dispatcher::check_agent_file(file, text)
}

/// Why a file of agents is not a file of one agent.
const BY_NAME: &str = "declares agents by name, for a dispatcher; allowed here: the fields of one agent, or --agent NAME for \
                       an agent of the dispatcher";

/// A mistake, and where it is if that is known.
type Mistake = (Option<Position>, String);

fn from_json(text: &str) -> Result<AgentSpec, Vec<Mistake>> {
    let wrong = |error: &serde_json::Error| json_mistake(text, error);
    let fields: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        let mistake = wrong(&error);
        vec![(mistake.position, format!("not a JSON object: {}", mistake.message))]
    })?;
    if fields.contains_key("agents") {
        return Err(vec![(None, BY_NAME.to_owned())]);
    }
    let unknown: Vec<Mistake> = fields
        .keys()
        .filter(|field| !FIELDS.contains(&field.as_str()))
        .map(|field| {
            let close = did_you_mean(field, FIELDS);
            let question = close.map(|close| format!("did you mean {close:?}? ")).unwrap_or_default();
            let message = format!("unknown field {field:?}; {question}allowed: {}", FIELDS.join(", "));
            (position_of_key(text, field), message)
        })
        .collect();
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let agent: AgentSpec = serde_json::from_str(text).map_err(|error| {
        let mistake = wrong(&error);
        vec![(mistake.position, mistake.message)]
    })?;
    let mut mistakes = agent.mistakes();
    mistakes.extend(check_templates(&agent.templates).err());
    if mistakes.is_empty() {
        return Ok(agent);
    }
    let with_position = |message: String| {
        let path = message.split([' ', ':']).next().unwrap_or_default();
        let key = path.rsplit('.').next().unwrap_or_default();
        (position_of_key(text, key), message)
    };
    Err(mistakes.into_iter().map(with_position).collect())
}

/// Finds where a key of an object is. Within texts its quotes would be escaped.
fn position_of_key(text: &str, key: &str) -> Option<Position> {
    let key = Value::from(key).to_string();
    let is_key = |at: &usize| text[at + key.len()..].trim_start().starts_with(':');
    text.match_indices(&key).map(|(at, _)| at).find(is_key).map(|at| position_of(text, at))
}

#[cfg(test)]
mod tests {
    use redial_proto::Policy;

    use super::*;

    #[test]
    fn an_agent_is_read_from_toml_or_json() {
        let toml = "model = \"small\"\nfallback_model = \"large\"\npolicy = \"fallback\"\ntools = [\"get_*\"]\n\
                    [budgets]\nturns = 5\n";
        let agent = parse("agent", toml, false).unwrap();
        assert_eq!((agent.model.as_str(), agent.policy, agent.budgets.turns), ("small", Policy::Fallback, 5));
        assert_eq!(agent.budgets.corrections, 10);
        assert_eq!(parse("agent", &serde_json::to_string(&agent).unwrap(), true), Ok(agent));
    }

    #[test]
    fn errors_name_the_problem() {
        let wrong = [
            ("modle = \"small\"", false),
            ("{\"model\": \"small\", \"max_corrections\": -1}", true),
            ("[agents.weather]\nmodel = \"small\"", false),
            ("[1]", true),
            ("{}", true),
            ("{\"model\": \"turns\",\n \"budgets\": {\"turns\": 0},\n \"temperature\": 3}", true),
            ("{\"modl\": \"small\",\n \"tool\": []}", true),
        ];
        let shown = wrong.map(|(text, json)| parse("agent", text, json).unwrap_err().join("\n"));
        insta::assert_snapshot!(shown.join("\n----\n"));
    }

    #[test]
    fn the_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent.toml");
        assert_eq!(read(&file).unwrap_err().code, Code::InvalidValue);
        fs::write(&file, "model = \"small\"\ncontext_tokens = 3").unwrap();
        let error = read(&file).unwrap_err();
        assert_eq!(error.code, Code::InvalidAgent);
        assert!(error.message.ends_with("agent.toml:2:18: context_tokens is 3; allowed: 1000 to 2000000"), "{error}");
    }

    #[test]
    fn every_field_is_known() {
        let schema = schemars::schema_for!(AgentSpec);
        let fields: Vec<_> = schema.get("properties").unwrap().as_object().unwrap().keys().cloned().collect();
        assert_eq!(fields, FIELDS);
    }
}
