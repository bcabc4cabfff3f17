//! Reads `agents.toml`. All mistakes are found at once, each with its line and column.

#[cfg(test)]
mod damaged;

use std::{collections::BTreeMap, fmt, path::Path};

use redial_engine::feedback::check_templates;
use redial_files::{
    Entries, FileError, LIMIT, Position, Rules, TomlMistake, entries, field_at, fill_missing, is_misspelt, position_of,
    read_entry, syntax_mistakes, toml_mistake,
};
use redial_proto::{AgentSpec, tool::check_name};
use serde::Deserialize;
use toml::{Spanned, de::DeTable};

/// Values that stand in for wrong ones of fields that others need.
const RULES: Rules<'static> =
    Rules { needed: &[], stand_ins: &[("model", "\"model\""), ("fallback_model", "\"model\"")] };

#[derive(Debug, Default)]
pub struct AgentsFile {
    pub agents: BTreeMap<String, AgentSpec>,
    /// The models and tools that they name, in the order of the file. Whether they exist depends on the workers.
    pub references: Vec<Reference>,
}

/// A model or a tool that an agent names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub position: Position,
    pub agent: String,
    /// `model`, `fallback_model` or `tools`.
    pub field: &'static str,
    /// Never a pattern.
    pub name: String,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: agent {:?}: {}", self.position, self.agent, self.field)
    }
}

/// Reads and checks a file, without asking which models and tools exist. The error has one line for each mistake, with the
/// file, its line and column.
pub fn check_agents_file(path: &Path) -> Result<AgentsFile, Vec<String>> {
    let file = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|error| vec![format!("{file}: the agents cannot be read: {error}")])?;
    parse(&file, &text)
}

/// Reads and checks a file that declares a single agent: it has the fields of one. The error has one line for each
/// mistake, with the file, its line and column.
pub fn check_agent_file(file: &str, text: &str) -> Result<AgentSpec, Vec<String>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut mistakes = syntax_mistakes(text, &errors);
    if mistakes.is_empty() {
        match agent(0, table) {
            Ok(spec) => return Ok(spec),
            Err(wrong) => mistakes = wrong,
        }
    }
    mistakes.sort_by_key(|mistake| mistake.at);
    Err(mistakes.into_iter().map(|mistake| line(file, text, mistake, None)).collect())
}

pub(super) fn parse(file: &str, text: &str) -> Result<AgentsFile, Vec<String>> {
    let Entries { tables, mistakes, .. } = entries(text, "agents");
    let mut found = AgentsFile::default();
    let mut mistakes: Vec<(TomlMistake, Option<String>)> =
        mistakes.into_iter().map(|mistake| (mistake, None)).collect();
    for (name, table) in tables {
        let Some(name) = name else {
            let message = "[[agents]] has no name; allowed: [agents.NAME]".to_owned();
            mistakes.push((TomlMistake { at: Some(table.span().start), message }, None));
            continue;
        };
        let (begin, references) = (name.span().start, references(&name, table.get_ref(), text));
        if let Err(message) = check_name("name", name.get_ref()) {
            mistakes.push((TomlMistake { at: Some(begin), message }, Some(name.get_ref().clone())));
        }
        match agent(begin, table) {
            Ok(spec) => {
                found.agents.insert(name.into_inner(), spec);
                found.references.extend(references);
            }
            Err(wrong) => {
                mistakes.extend(wrong.into_iter().map(|mistake| (mistake, Some(name.get_ref().clone()))));
            }
        }
    }
    if mistakes.is_empty() {
        found.references.sort_by_key(|reference| reference.position);
        return Ok(found);
    }
    mistakes.sort_by_key(|(mistake, _)| mistake.at);
    Err(mistakes.into_iter().take(LIMIT).map(|(mistake, agent)| line(file, text, mistake, agent)).collect())
}

/// Returns the agent of a table, or everything that is wrong with it. `begin` is where the table is named.
fn agent(begin: usize, mut table: Spanned<DeTable<'_>>) -> Result<AgentSpec, Vec<TomlMistake>> {
    let missing = fill_missing(table.get_mut(), &[("model", "\"model\"")]);
    let at = |mistake: &TomlMistake| mistake.at;
    let mut mistakes = match read_entry(table, &RULES, at, |table| spec(begin, table)) {
        Ok(spec) if missing.is_empty() => return Ok(spec),
        Ok(_) => Vec::new(),
        Err(wrong) => wrong,
    };
    let misspelt = |field: &str| is_misspelt(field, mistakes.iter().map(|mistake| mistake.message.as_str()));
    let missing: Vec<TomlMistake> = missing
        .into_iter()
        .filter(|field| !misspelt(field))
        .map(|field| {
            let message = format!("the field {field:?} is missing; allowed: the name of a model");
            TomlMistake { at: Some(begin), message }
        })
        .collect();
    mistakes.extend(missing);
    Err(mistakes)
}

fn spec(begin: usize, table: Spanned<DeTable<'_>>) -> Result<AgentSpec, TomlMistake> {
    let fields = table.clone();
    let spec = AgentSpec::deserialize(toml::de::Deserializer::from(table)).map_err(|error| {
        let mistake = toml_mistake(&error);
        TomlMistake { at: mistake.at.or(Some(begin)), ..mistake }
    })?;
    spec.check().and_then(|()| check_templates(&spec.templates)).map_err(|message| {
        // The message begins with the field's path.
        let path = message.split([' ', ':']).next().unwrap_or_default();
        TomlMistake { at: field_at(fields.get_ref(), path).or(Some(begin)), message }
    })?;
    Ok(spec)
}

fn line(file: &str, text: &str, mistake: TomlMistake, agent: Option<String>) -> String {
    let agent = agent.map(|agent| format!("agent {agent:?}"));
    FileError::of_mistake(Path::new(file), text, mistake, agent).to_string()
}

fn references(name: &Spanned<String>, table: &DeTable<'_>, text: &str) -> Vec<Reference> {
    let reference = |field, at, value: &str| Reference {
        position: position_of(text, at),
        agent: name.get_ref().clone(),
        field,
        name: value.to_owned(),
    };
    let mut found = Vec::new();
    for field in ["model", "fallback_model"] {
        let value = table.get(field);
        found.extend(value.and_then(|value| Some(reference(field, value.span().start, value.get_ref().as_str()?))));
    }
    let tools = table.get("tools").and_then(|tools| tools.get_ref().as_array());
    for tool in tools.into_iter().flatten() {
        let named = tool.get_ref().as_str().filter(|tool| !tool.contains('*'));
        found.extend(named.map(|named| reference("tools", tool.span().start, named)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_defaults_for_everything_but_its_model() {
        let text = "[agents.\"订票\"]\nmodel = \"small\"\n[agents.b]\nmodel = \"m\"\ntools = [\"a_*\"]";
        let agents = parse("agents.toml", text).unwrap().agents;
        assert_eq!(agents["订票"], AgentSpec::new("small"));
        assert_eq!(agents["b"].tools, ["a_*"]);
        assert!(parse("agents.toml", "").unwrap().agents.is_empty());
    }

    #[test]
    fn a_bad_file_is_named_with_the_agent_the_field_and_what_is_allowed() {
        let bad = [
            "[agents.a]\nmodle = \"m\"",
            "[agents.a]\ntools = []",
            "[agents.a]\nmodel = \"m\"\npolicy = \"fallback\"",
            "[agents.a]\nmodel = \"m\"\npolicy = \"fall\"",
            "[agents.a]\nmodel = \"m\"\nbudgets.turns = \"many\"",
            "[agents.a]\nmodel = \"m\"\nbudgets = {turn = 3}",
            "[agents.a]\nmodel = \"m\"\nbudgets.turns = 0\ncontext_tokens = 3",
            "[agents.a]\nmodel = \"m\"\ntemplates = {\"nudge.empty\" = \"\"}",
            "[agents.\"a b\"]\nmodel = \"m\"",
            "[agent.a]\nmodel = \"m\"",
            "[agents.a\n",
            "[[agents]]\nmodel = \"m\"",
            "agents = 3",
        ];
        let wrong = |text| parse("agents.toml", text).unwrap_err().join("\n");
        insta::assert_snapshot!(bad.map(wrong).join("\n\n"));
    }

    #[test]
    fn the_mistakes_of_one_agent_hide_no_others() {
        let text = "[agents.\"a b\"]\nfallback_model = 3\npolicy = \"fallback\"\ntemperature = 3\nmax_tokens = 0\n\
                    context_tokens = \"many\"\n[agents.\"a b\".budgets]\nturns = 0\ncost_usd = -1\nsecond = 3\n\
                    [agents.b]\nmodel = \"x y\"\n";
        insta::assert_snapshot!(parse("agents.toml", text).unwrap_err().join("\n"));
        let alone = "temperature = 3\nmodel = 1\nbudgets.turns = 0\n";
        insta::assert_snapshot!(check_agent_file("agent.toml", alone).unwrap_err().join("\n"));
        assert_eq!(check_agent_file("agent.toml", "model = \"m\""), Ok(AgentSpec::new("m")));
        assert_eq!(check_agent_file("agent.toml", "model = \n").unwrap_err().len(), 1);
    }

    #[test]
    fn models_and_tools_are_found_with_their_positions() {
        let text = "[agents.a]\ntools = [\"get_*\", \"echo\"]\nmodel = \"small\"\nfallback_model = \"large\"\n";
        let found = parse("agents.toml", text).unwrap().references;
        let shown: Vec<String> = found.iter().map(|reference| format!("{reference} {}", reference.name)).collect();
        insta::assert_snapshot!(shown.join("\n"));
    }
}
