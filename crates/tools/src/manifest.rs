//! `tools.toml`: HTTP and command tools, declared.
//!
//! Every mistake in a manifest is found when it is loaded, before the first call, and all are reported at once, each with
//! file, line, column, tool and field.

mod build;
mod error;
mod exit_codes;
mod file;
mod location;

use std::{collections::HashMap, fs, path::Path, time::Duration};

use redial_files::{Entries, LIMIT, entries, read_entry};
use reqwest::Client;
use serde::Deserialize;
use toml::{Spanned, de::DeTable};

use self::{file::Entry, location::Location};
use crate::{
    http,
    tool::{Tool, check_compatible},
};

pub use error::{ManifestError, ManifestErrors};

/// Other fields refer to these, so nothing is said about a tool without them.
const NEEDED: [&str; 3] = ["name", "parameters", "parameters_file"];

/// The tools of a manifest. Secrets are read from the environment of this process.
pub fn load(path: &Path) -> Result<Vec<Tool>, ManifestErrors> {
    load_with(path, &|name| std::env::var(name).ok())
}

/// The tools of a manifest; `variable` gives the value of an environment variable.
pub fn load_with(path: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Tool>, ManifestErrors> {
    let text = fs::read_to_string(path).map_err(|error| {
        ManifestErrors(vec![ManifestError::of_file(path, format!("the file cannot be read: {error}"))])
    })?;
    let Entries { tables, mistakes } = entries(&text, "tool");
    let mut errors: Vec<ManifestError> =
        mistakes.into_iter().map(|mistake| ManifestError::of_mistake(path, &text, mistake, None)).collect();
    let mut loader = Loader { folder: path.parent().unwrap_or(Path::new(".")), variable, clients: HashMap::new() };
    let mut tools = Vec::with_capacity(tables.len());
    for (_, table) in tables {
        match read_entry(
            table,
            &NEEDED,
            |error: &ManifestError| error.at.map(|at| at as usize),
            |table| loader.entry(table, path, &text),
        ) {
            Ok((tool, at)) => {
                tools.push(tool);
                if let Err(conflict) = check_compatible(&tools) {
                    errors.push(at.error(path, &text, conflict.to_string()));
                    tools.pop();
                }
            }
            Err(found) => errors.extend(found),
        }
    }
    if errors.is_empty() {
        return Ok(tools);
    }
    errors.sort_by_key(|error| error.at);
    errors.truncate(LIMIT);
    Err(ManifestErrors(errors))
}

/// Where the tool of an entry is named.
struct Named {
    tool: String,
    at: usize,
}

impl Named {
    fn error(self, file: &Path, text: &str, message: String) -> ManifestError {
        Location { file, text, tool: self.tool, at: self.at }.error("", message)
    }
}

/// Builds the tools of one manifest.
struct Loader<'a> {
    /// The manifest's folder; relative paths start there.
    folder: &'a Path,
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// One client for each connect timeout, so that tools share connections.
    clients: HashMap<Duration, Client>,
}

impl Loader<'_> {
    fn entry(&mut self, table: Spanned<DeTable<'_>>, file: &Path, text: &str) -> Result<(Tool, Named), ManifestError> {
        let name = table.get_ref().get("name").and_then(|name| name.get_ref().as_str()).map(str::to_owned);
        let entry = Entry::deserialize(toml::de::Deserializer::from(table))
            .map_err(|error| ManifestError::of_mistake(file, text, redial_files::toml_mistake(&error), name))?;
        let (tool, at) = (entry.name.get_ref().clone(), entry.name.span().start);
        let location = Location { file, text, tool: tool.clone(), at };
        Ok((self.tool(entry, &location)?, Named { tool, at }))
    }

    fn client(&mut self, connect_timeout: Duration) -> Result<Client, String> {
        if let Some(client) = self.clients.get(&connect_timeout) {
            return Ok(client.clone());
        }
        let client = http::build_client(connect_timeout)
            .map_err(|error| format!("the HTTP client could not be created: {error}"))?;
        self.clients.insert(connect_timeout, client.clone());
        Ok(client)
    }
}
