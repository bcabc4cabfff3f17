//! Files that users write.

use std::{collections::BTreeMap, fs, path::Path};

use redial_proto::AgentSpec;
use serde::Deserialize;
use tempfile::TempDir;

use super::{
    messages::good,
    target::{Decoder, Target},
};
use crate::corpus;

/// `agents.toml`.
pub(super) const AGENTS: Target =
    Target { name: "agents.toml", weight: 60, corpus: corpus::agents, decoder: || Box::new(agents) };

/// `models.toml`.
pub(super) const MODELS: Target = Target { name: "models.toml", weight: 1, corpus: corpus::models, decoder: models };

/// The scripts of scripted models.
pub(super) const SCRIPT: Target = Target { name: "script", weight: 10, corpus: corpus::scripts, decoder: script };

/// `tools.toml`.
pub(super) const TOOLS: Target = Target { name: "tools.toml", weight: 1, corpus: corpus::tools, decoder: tools };

fn agents(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(default)]
        agents: BTreeMap<String, AgentSpec>,
    }
    let text = String::from_utf8_lossy(bytes);
    toml::from_str::<File>(&text).is_ok_and(|file| file.agents.values().all(good))
}

/// Gives every variable a value.
const VARIABLE: &dyn Fn(&str) -> Option<String> = &|_| Some("value".to_owned());

/// The error must name the file.
fn located(message: &str) {
    assert!(message.contains(".toml"), "the error does not name its file: {message}");
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap_or_else(|error| panic!("no temporary folder: {error}"))
}

fn models() -> Decoder {
    let folder = folder();
    write(&folder.path().join("rules.toml"), &corpus::scripts()[0]);
    Box::new(move |bytes| {
        let path = folder.path().join("models.toml");
        write(&path, bytes);
        redial_llm::load_with(&path, VARIABLE).map_err(|error| located(&error.to_string())).is_ok()
    })
}

fn script() -> Decoder {
    let folder = folder();
    let path = folder.path().join("models.toml");
    write(&path, b"[models.played]\nprovider = \"script\"\nscript = \"rules.toml\"\n");
    Box::new(move |bytes| {
        write(&folder.path().join("rules.toml"), bytes);
        redial_llm::load_with(&path, VARIABLE).map_err(|error| located(&error.to_string())).is_ok()
    })
}

fn tools() -> Decoder {
    let folder = folder();
    Box::new(move |bytes| {
        let path = folder.path().join("tools.toml");
        write(&path, bytes);
        redial_tools::load_with(&path, &redial_tools::CommandUser::Root, VARIABLE)
            .map_err(|error| located(&error.to_string()))
            .is_ok()
    })
}
