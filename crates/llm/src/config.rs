//! `models.toml`: the models that a worker can ask.
//!
//! Every mistake in the file is found when it is loaded, before the first turn, and all are reported at once, each with file,
//! line, column, model and field. Only a variable that is not set is reported later, when the model is asked: the other models work without it.

mod build;
mod endpoint;
mod file;
mod location;
mod variables;

use std::{fs, path::Path};

use redial_files::{Entries, LIMIT, entries, read_entry, toml_mistake};
use serde::Deserialize;
use toml::{Spanned, de::DeTable};

use self::{build::Builder, file::Entry, location::Location};
use crate::{
    error::{ModelsError, ModelsErrors},
    model::Model,
};

/// What a model may do depends on this, so nothing is said about a model without it.
const NEEDED: [&str; 1] = ["provider"];

/// The models of a file. Secrets are read from the environment of this process.
pub fn load(path: &Path) -> Result<Vec<Model>, ModelsErrors> {
    load_with(path, &|name| std::env::var(name).ok())
}

/// The models of a file; `variable` gives the value of an environment variable.
pub fn load_with(path: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Model>, ModelsErrors> {
    let one = |message: String| ModelsErrors(vec![ModelsError::of_file(path, message)]);
    let text = fs::read_to_string(path).map_err(|error| one(format!("the file cannot be read: {error}")))?;
    let builder = Builder::new(path.parent().unwrap_or(Path::new(".")), variable).map_err(one)?;
    let Entries { tables, mistakes } = entries(&text, "models");
    let mut errors: Vec<ModelsError> =
        mistakes.into_iter().map(|mistake| ModelsError::of_mistake(path, &text, mistake, None)).collect();
    let mut models = Vec::with_capacity(tables.len());
    for (name, table) in tables {
        let Some(name) = name else {
            let message = "[[models]] has no name; allowed: [models.NAME]".to_owned();
            errors.push(ModelsError::of_place(path, &text, table.span().start, message));
            continue;
        };
        // Only an error in this file can be found by its position; a script has other ones.
        let at = |error: &ModelsError| error.at.filter(|_| error.file == path).map(|at| at as usize);
        match read_entry(table, &NEEDED, at, |table| model(&builder, &name, table, path, &text)) {
            Ok(model) => models.push(model),
            Err(found) => errors.extend(found),
        }
    }
    if errors.is_empty() {
        return Ok(models);
    }
    errors.sort_by_key(|error| error.at.filter(|_| error.file == path));
    errors.truncate(LIMIT);
    Err(ModelsErrors(errors))
}

fn model(
    builder: &Builder<'_>,
    name: &Spanned<String>,
    table: Spanned<DeTable<'_>>,
    file: &Path,
    text: &str,
) -> Result<Model, ModelsError> {
    let location = Location { file, text, at: name.span().start, model: name.get_ref().clone() };
    let entry = Entry::deserialize(toml::de::Deserializer::from(table)).map_err(|error| {
        let mut mistake = toml_mistake(&error);
        // What is missing is missing in the whole table.
        mistake.at = mistake.at.or(Some(location.at));
        ModelsError::of_mistake(file, text, mistake, Some(location.model.clone()))
    })?;
    builder.model(&entry, &location)
}
