//! Checks every file that the roles read, before any server starts. All mistakes of all files are told at once.

use std::path::Path;

use redial_arguments::Schema;
use redial_dispatcher::AgentsFile;
use redial_files::{did_you_mean, entries, field_at, position_of};
use redial_proto::{ApiError, Code};
use redial_queue::QueueConfig;
use redial_worker::CommandUser;
use serde::Deserialize;
use serde_json::Value;
use toml::de::{DeTable, ValueDeserializer};

use crate::{
    commands::nats_config,
    output,
    settings::{Problems, Settings, variable},
};

#[derive(Default)]
pub(crate) struct Found {
    tools: Option<Vec<String>>,
    models: Option<Vec<String>>,
    agents: Option<AgentsFile>,
    agents_file: String,
    /// A tool of the manifest starts programs.
    pub(crate) has_commands: bool,
    /// What would fail now although nothing is wrong in the files.
    warnings: Vec<String>,
}

pub(crate) fn access(settings: &Settings, problems: &mut Problems) {
    if let Some(file) = settings.access() {
        problems.keep(nats_config::read(&file));
    }
}

/// Checks the settings and files of a dispatcher but the access file.
pub(crate) fn dispatcher(settings: &Settings, problems: &mut Problems, found: &mut Found) {
    let config = problems.keep(settings.dispatcher(QueueConfig::default(), String::new()));
    let Some(file) = config.map_or_else(|| settings.agents(), |config| config.agents) else { return };
    found.agents_file = file.display().to_string();
    match redial_dispatcher::check_agents_file(&file) {
        Ok(agents) => found.agents = Some(agents),
        Err(wrong) => {
            let code = if file.exists() { Code::InvalidAgent } else { Code::InvalidConfiguration };
            problems.add_all(code, wrong);
        }
    }
}

pub(crate) fn gateway(settings: &Settings, problems: &mut Problems) {
    problems.keep(settings.gateway(QueueConfig::default(), String::new()));
}

pub(crate) fn worker(settings: &Settings, problems: &mut Problems, found: &mut Found) {
    let config = problems.keep(settings.worker(QueueConfig::default()));
    let pools = config.as_ref().map(|config| config.pools.clone()).unwrap_or_default();
    let models = settings.models(&pools);
    if let Some(file) = settings.manifest() {
        // A wrong user is told already.
        let user = config.map_or(CommandUser::Root, |config| config.command_user);
        let loaded = redial_tools::load_with(&file, &user, &variable);
        let wrong = loaded.as_ref().err().map(|errors| errors.0.iter().map(ToString::to_string).collect::<Vec<_>>());
        problems.add_all(Code::InvalidManifest, wrong.unwrap_or_default());
        problems.add_all(Code::InvalidManifest, schemas(&file));
        if let Ok(tools) = loaded {
            found.warnings.extend(tools.iter().filter_map(|tool| tool.warning.clone()));
            found.has_commands = tools.iter().any(|tool| tool.starts_programs);
            found.tools = Some(tools.into_iter().map(|tool| tool.spec.name).collect());
        }
    }
    if let Some(file) = models {
        match redial_worker::check_models(&file, &variable) {
            Ok(models) => {
                let (names, warnings): (Vec<_>, Vec<_>) = models.into_iter().unzip();
                found.warnings.extend(warnings.into_iter().flatten());
                found.models = Some(names);
            }
            Err(errors) => problems.add_all(Code::InvalidConfiguration, errors.0.iter().map(ToString::to_string)),
        }
    }
}

/// Finds schemas that a dispatcher would refuse, also of tools that have other mistakes.
fn schemas(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let wrong = |table: &DeTable<'_>| {
        let (field, schema) = schema(file, table)?;
        let error = Schema::compile(&schema).err()?;
        let position = field_at(table, field).map(|at| format!(":{}", position_of(&text, at))).unwrap_or_default();
        let name = table.get("name").and_then(|name| name.get_ref().as_str());
        let tool = name.map(|name| format!(": tool {name:?}")).unwrap_or_default();
        Some(format!("{}{position}{tool}: parameters: {error}", file.display()))
    };
    entries(&text, "tool").tables.iter().filter_map(|(_, table)| wrong(table.get_ref())).collect()
}

/// Returns a tool's schema and its field; `None` if there is none, or no object, as the manifest's reader tells.
fn schema(file: &Path, table: &DeTable<'_>) -> Option<(&'static str, Value)> {
    let (field, schema) = if let Some(inline) = table.get("parameters") {
        ("parameters", Value::deserialize(ValueDeserializer::from(inline.clone())).ok()?)
    } else {
        let name = table.get("parameters_file")?.get_ref().as_str()?;
        let text = std::fs::read_to_string(file.parent()?.join(name)).ok()?;
        ("parameters_file", serde_json::from_str(&text).ok()?)
    };
    schema.is_object().then_some((field, schema))
}

impl Found {
    /// Counts the tools, models and agents that the files declare; `None` without files.
    pub(crate) fn summary(&self) -> Option<String> {
        let count = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        let parts = [
            self.tools.as_ref().map(|tools| count(tools.len(), "tool")),
            self.models.as_ref().map(|models| count(models.len(), "model")),
            self.agents.as_ref().map(|agents| count(agents.agents.len(), "agent")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Warns of what may fail, a line each: a program of a tool that is not there, a variable of a model that is not
    /// set; and a model or tool that an agent names and none of these files declares. That is no mistake if another
    /// worker has it, but most often it is one.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.iter().cloned().chain(self.unknown_names()).collect()
    }

    fn unknown_names(&self) -> Vec<String> {
        let Some(agents) = &self.agents else { return Vec::new() };
        let echo = ["echo"];
        let tools: Vec<&str> = self.tools.iter().flatten().map(String::as_str).chain(echo).collect();
        let models: Vec<&str> = self.models.iter().flatten().map(String::as_str).collect();
        let unknown = |reference: &redial_dispatcher::Reference| {
            let (what, known) = if reference.field == "tools" { ("tool", &tools) } else { ("model", &models) };
            let name = reference.name.as_str();
            if known.contains(&name) {
                return None;
            }
            let close = did_you_mean(name, known.iter().copied());
            let close = close.map(|close| format!("; did you mean {close:?}?")).unwrap_or_default();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Some(format!(
                "{}:{reference}: no file here declares a {what} {name:?}{close} (declared: {known}); this agent can use it \
                 only while another worker has it",
                self.agents_file
            ))
        };
        agents.references.iter().filter_map(unknown).collect()
    }
}

pub(crate) fn check_dispatcher(settings: &Settings) -> Result<(), ApiError> {
    let mut problems = settings.problems();
    access(settings, &mut problems);
    dispatcher(settings, &mut problems, &mut Found::default());
    problems.into_result()
}

pub(crate) fn check_gateway(settings: &Settings) -> Result<(), ApiError> {
    let mut problems = settings.problems();
    access(settings, &mut problems);
    gateway(settings, &mut problems);
    problems.into_result()
}

pub(crate) fn check_worker(settings: &Settings) -> Result<(), ApiError> {
    let mut problems = settings.problems();
    let mut found = Found::default();
    worker(settings, &mut problems, &mut found);
    problems.into_result()?;
    for warning in found.warnings() {
        output::note(format!("warning: {warning}"));
    }
    Ok(())
}
