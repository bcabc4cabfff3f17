//! Reads an agent from a file that has the fields of a table of `agents.toml`.

use std::{fs, path::Path};

use redial_files::{did_you_mean, json_mistake, position_of, toml_mistake};
use redial_proto::{AgentSpec, ApiError, Code};

/// Fields of an agent.
const FIELDS: [&str; 15] = [
    "model",
    "fallback_model",
    "system",
    "tools",
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

/// Reads and checks the file.
pub(super) fn read(file: &Path) -> Result<AgentSpec, ApiError> {
    let name = file.display();
    let text = fs::read_to_string(file)
        .map_err(|error| ApiError::new(Code::InvalidValue, format!("--agent-file {name}: {error}")))?;
    let json = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let agent = parse(&text, json).and_then(|agent| agent.check().map(|()| agent));
    agent.map_err(|what| ApiError::new(Code::InvalidAgent, format!("{name}: {what}")))
}

fn parse(text: &str, json: bool) -> Result<AgentSpec, String> {
    let invalid = |error: toml::de::Error| {
        let mistake = toml_mistake(&error);
        let at = mistake.at.map(|at| position_of(text, at));
        at.map_or_else(String::new, |at| format!("line {}, column {}: ", at.line, at.column)) + &mistake.message
    };
    if json {
        let wrong = |error: &serde_json::Error| json_mistake(text, error).to_string();
        check_fields(&serde_json::from_str(text).map_err(|error| format!("not a JSON object: {}", wrong(&error)))?)?;
        return serde_json::from_str(text).map_err(|error| wrong(&error));
    }
    check_fields(&toml::from_str(text).map_err(invalid)?)?;
    toml::from_str(text).map_err(invalid)
}

fn check_fields(fields: &serde_json::Map<String, serde_json::Value>) -> Result<(), String> {
    if fields.contains_key("agents") {
        return Err(
            "declares agents by name, for a dispatcher; allowed here: the fields of one agent, or --agent NAME \
                    for an agent of the dispatcher"
                .to_owned(),
        );
    }
    let Some(field) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) else { return Ok(()) };
    let question = did_you_mean(field, FIELDS).map(|close| format!("did you mean {close:?}? ")).unwrap_or_default();
    Err(format!("unknown field {field:?}; {question}allowed: {}", FIELDS.join(", ")))
}

#[cfg(test)]
mod tests {
    use redial_proto::Policy;

    use super::*;

    #[test]
    fn an_agent_is_read_from_toml_or_json() {
        let toml = "model = \"small\"\nfallback_model = \"large\"\npolicy = \"fallback\"\ntools = [\"get_*\"]\n\
                    [budgets]\nturns = 5\n";
        let agent = parse(toml, false).unwrap();
        assert_eq!((agent.model.as_str(), agent.policy, agent.budgets.turns), ("small", Policy::Fallback, 5));
        assert_eq!(agent.budgets.corrections, 10);
        assert_eq!(parse(&serde_json::to_string(&agent).unwrap(), true), Ok(agent));
    }

    #[test]
    fn errors_name_the_problem() {
        let wrong = [
            ("modle = \"small\"", false),
            ("zzz = 1", false),
            ("model = ", false),
            ("model = \"small\"\npolicy = \"feedbak\"", false),
            ("model = \"small\"\n[budgets]\nturn = 5", false),
            ("{\"model\": \"small\", \"max_corrections\": -1}", true),
            ("[agents.weather]\nmodel = \"small\"", false),
            ("[1]", true),
            ("{}", true),
        ];
        let shown = wrong.map(|(text, json)| parse(text, json).unwrap_err());
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
        assert!(error.message.ends_with("agent.toml: context_tokens is 3; allowed: 1000 to 2000000"), "{error}");
    }

    #[test]
    fn every_field_is_known() {
        let schema = schemars::schema_for!(AgentSpec);
        let fields: Vec<_> = schema.get("properties").unwrap().as_object().unwrap().keys().cloned().collect();
        assert_eq!(fields, FIELDS);
    }
}
