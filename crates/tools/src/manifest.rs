//! `tools.toml`: HTTP and command tools, declared.
//!
//! Every mistake in a manifest is found when it is loaded, before the first call, and reported with file, line, column, tool
//! and field.

mod build;
mod error;
mod exit_codes;
mod file;
mod location;

use std::{collections::HashMap, fs, path::Path, time::Duration};

use reqwest::Client;

use self::{file::File, location::Location};
use crate::{
    http,
    tool::{Tool, check_compatible},
};

pub use error::ManifestError;

/// The tools of a manifest. Secrets are read from the environment of this process.
pub fn load(path: &Path) -> Result<Vec<Tool>, ManifestError> {
    load_with(path, &|name| std::env::var(name).ok())
}

/// The tools of a manifest; `variable` gives the value of an environment variable.
pub fn load_with(path: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Tool>, ManifestError> {
    let text = fs::read_to_string(path)
        .map_err(|error| ManifestError::of_file(path, format!("the file cannot be read: {error}")))?;
    let file: File = toml::from_str(&text).map_err(|error| ManifestError::of_syntax(path, &text, &error))?;
    let mut loader = Loader { folder: path.parent().unwrap_or(Path::new(".")), variable, clients: HashMap::new() };
    let mut tools = Vec::with_capacity(file.tool.len());
    for entry in file.tool {
        let location =
            Location { file: path, text: &text, tool: entry.name.get_ref().clone(), at: entry.name.span().start };
        tools.push(loader.tool(entry, &location)?);
        check_compatible(&tools).map_err(|conflict| location.error("", conflict.to_string()))?;
    }
    Ok(tools)
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
