//! `tools.toml`: HTTP and command tools, declared.
//!
//! Every mistake in a manifest is found when it is loaded, before the first call, and all are reported at once, each with
//! file, line, column, tool and field.

mod build;
mod exit_codes;
mod file;
mod name;

use std::{
    collections::{HashMap, HashSet, hash_map},
    fs,
    path::Path,
    time::Duration,
};

use redial_files::{
    Entries, FileError, FileErrors, LIMIT, Location, Rules, entries, field_at, fill_missing, is_misspelt, read_entry,
};
use redial_http::Http;
use serde::Deserialize;
use toml::{Spanned, de::DeTable};

use self::{
    file::Entry,
    name::{KIND, Name},
};
use crate::{
    command::{Account, CommandUser},
    tool::{Tool, ToolConflict, check_compatible},
};

/// Other fields refer to `parameters`, so nothing more is said about a tool whose parameters are wrong.
const RULES: Rules<'static> = Rules { needed: &["parameters", "parameters_file"], stand_ins: &REQUIRED };
/// Fields without which a tool cannot be read, each with a value that stands in for a missing or wrong one.
const REQUIRED: [(&str, &str); 4] = [
    ("name", "\"tool\""),
    ("http.method", "\"POST\""),
    ("http.url", "\"http://localhost\""),
    ("command.argv", "[\"true\"]"),
];

/// The tools of a manifest, whose programs run as this process's own user, which must not be root. Secrets are read from the
/// environment of this process.
pub fn load(path: &Path) -> Result<Vec<Tool>, FileErrors> {
    load_with(path, &CommandUser::Own, &|name| std::env::var(name).ok())
}

/// The same, with programs that run as `user`; `variable` gives the value of an environment variable.
pub fn load_with(
    path: &Path,
    user: &CommandUser,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Tool>, FileErrors> {
    let text = fs::read_to_string(path)
        .map_err(|error| FileErrors(vec![FileError::of_file(path, format!("the file cannot be read: {error}"))]))?;
    let Entries { tables, mistakes, .. } = entries(&text, "tool");
    let mut errors: Vec<FileError> =
        mistakes.into_iter().map(|mistake| FileError::of_mistake(path, &text, mistake, None)).collect();
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut loader = Loader { folder, variable, account: user.account(), clients: HashMap::new() };
    let mut tools = Vec::with_capacity(tables.len());
    let mut names = HashSet::new();
    for (_, mut table) in tables {
        let name = Name::of(&table);
        if name.text.as_ref().is_some_and(|text| !names.insert(text.clone())) {
            let twice = "the name is declared twice; each may be used only once".to_owned();
            errors.push(name.error(path, &text, twice));
        }
        let missing = fill_missing(table.get_mut(), &REQUIRED);
        let missing: Vec<(&str, Option<usize>)> = missing
            .into_iter()
            .map(|field| (field, field.rsplit_once('.').and_then(|(parent, _)| field_at(table.get_ref(), parent))))
            .collect();
        let at = |error: &FileError| error.place.wrong_part();
        let mut own = Vec::new();
        match read_entry(table, &RULES, at, |table| loader.entry(table, &name, path, &text)) {
            Ok(tool) => {
                tools.push(tool);
                if let Err(conflict) = check_compatible(&tools) {
                    tools.pop();
                    if !matches!(conflict, ToolConflict::Name(_)) {
                        errors.push(name.error(path, &text, conflict.to_string()));
                    }
                }
            }
            Err(found) => own = found,
        }
        for (field, at) in missing {
            if !is_misspelt(field, own.iter().map(|error| error.message.as_str())) {
                let place = Name { at: at.unwrap_or(name.at), ..name.clone() };
                errors.push(place.error(path, &text, format!("the field {field:?} is missing")));
            }
        }
        errors.extend(own);
    }
    // Once, not for each of them.
    if tools.iter().any(|tool| tool.starts_programs)
        && let Err(message) = user.check()
    {
        errors.push(FileError::of_file(path, message));
    }
    if errors.is_empty() {
        return Ok(tools);
    }
    errors.sort_by_key(|error| error.place);
    errors.truncate(LIMIT);
    Err(FileErrors(errors))
}

/// Builds the tools of one manifest.
struct Loader<'a> {
    /// The manifest's folder; relative paths start there.
    folder: &'a Path,
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// The user that programs run as; the worker's own if `None`.
    account: Option<&'a Account>,
    /// One for each connect timeout, so that tools share connections.
    clients: HashMap<Duration, Http>,
}

impl Loader<'_> {
    fn entry(&mut self, table: Spanned<DeTable<'_>>, name: &Name, file: &Path, text: &str) -> Result<Tool, FileError> {
        let fields = table.get_ref().clone();
        let location = Location { file, text, kind: KIND, name: name.text.as_deref(), at: name.at, fields: &fields };
        let entry = Entry::deserialize(toml::de::Deserializer::from(table))
            .map_err(|error| FileError::of_mistake(file, text, redial_files::toml_mistake(&error), location.entry()))?;
        self.tool(entry, &location)
    }

    fn clients(&mut self, connect_timeout: Duration) -> Result<&Http, String> {
        Ok(match self.clients.entry(connect_timeout) {
            hash_map::Entry::Occupied(clients) => clients.into_mut(),
            hash_map::Entry::Vacant(missing) => {
                let clients = Http::new(connect_timeout, self.variable);
                missing.insert(clients.map_err(|error| format!("the HTTP client could not be created: {error}"))?)
            }
        })
    }
}
