//! `models.toml`: the models that a worker can ask.
//!
//! Every mistake in the file is found when it is loaded, before the first turn, and all are reported at once, each with file,
//! line, column, model and field, once. Only a variable that is not set is reported later, when the model is asked: the other models work without it.

mod build;
mod endpoint;
mod file;
mod variables;

use std::{fs, path::Path};

use redial_files::{
    Entries, FileError, FileErrors, LIMIT, Location, Rules, entries, fill_missing, is_misspelt, read_entry,
    toml_mistake,
};
use redial_proto::{tool::check_name, turn};
use serde::Deserialize;
use toml::{Spanned, de::DeTable};

use self::{build::Builder, file::Entry};
use crate::model::Model;

/// What a model may do depends on its provider, so nothing more is said about a model without one. The values stand in for
/// wrong ones of fields that other parts need.
const RULES: Rules<'static> = Rules { needed: &["provider"], stand_ins: &[MODEL, BASE_URL] };
const MODEL: (&str, &str) = ("model", "\"model\"");
const BASE_URL: (&str, &str) = ("base_url", "\"http://localhost\"");

/// Loads the models of a file. Secrets are read from the environment of this process.
pub fn load(path: &Path) -> Result<Vec<Model>, FileErrors> {
    load_with(path, &|name| std::env::var(name).ok())
}

/// Loads the models of a file; `variable` gives the value of an environment variable.
pub fn load_with(path: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Model>, FileErrors> {
    let one = |message: String| FileErrors(vec![FileError::of_file(path, message)]);
    let text = fs::read_to_string(path).map_err(|error| one(format!("the file cannot be read: {error}")))?;
    let builder = Builder::new(path.parent().unwrap_or(Path::new(".")), variable).map_err(one)?;
    let Entries { tables, mistakes, .. } = entries(&text, "models");
    let mut errors: Vec<FileError> =
        mistakes.into_iter().map(|mistake| FileError::of_mistake(path, &text, mistake, None)).collect();
    let mut models = Vec::with_capacity(tables.len());
    for (name, mut table) in tables {
        let Some(name) = name else {
            let message = "[[models]] has no name; allowed: [models.NAME]".to_owned();
            errors.push(FileError::of_place(path, &text, table.span().start, message));
            continue;
        };
        let fields = table.get_ref().clone();
        let location = Location {
            file: path,
            text: &text,
            kind: "model",
            name: Some(name.get_ref()),
            at: name.span().start,
            fields: &fields,
        };
        let wrong = |field: &str, message: String| location.name_error(field, message);
        let name_error = check_name("tool name", &turn::tool_name(name.get_ref())).err();
        errors.extend(name_error.map(|message| wrong("", message)));
        if table.get_ref().get("provider").is_none() {
            errors.push(wrong("", "the field \"provider\" is missing".to_owned()));
            continue;
        }
        let missing = missing(table.get_mut());
        let at = |error: &FileError| error.place.wrong_part();
        let mut own = Vec::new();
        match read_entry(table, &RULES, at, |table| model(&builder, table, location)) {
            Ok(model) => models.push(model),
            Err(found) => own = found,
        }
        for (field, message) in missing {
            if !is_misspelt(field, own.iter().map(|error| error.message.as_str())) {
                errors.push(wrong(field, message));
            }
        }
        errors.extend(own);
    }
    errors.sort_by_key(|error| error.place);
    errors.extend(builder.script_errors());
    if errors.is_empty() {
        return Ok(models);
    }
    errors.truncate(LIMIT);
    Err(FileErrors(errors))
}

/// Returns the fields that are missing, each with what is needed. Values stand in for them, so that the others are
/// read.
fn missing(table: &mut DeTable<'_>) -> Vec<(&'static str, String)> {
    let provider = table.get("provider").and_then(|provider| provider.get_ref().as_str()).unwrap_or_default();
    if provider == "script" {
        let is_missing = table.get("script").is_none();
        let message = "is missing; the path of a file of rules is needed".to_owned();
        return is_missing.then_some(("script", message)).into_iter().collect();
    }
    let required = match provider {
        "openai" | "anthropic" => vec![MODEL],
        "react" => vec![MODEL, BASE_URL],
        _ => Vec::new(),
    };
    let message = |field| match field {
        "model" => "is missing; the provider's own name of the model is needed".to_owned(),
        _ => "is missing; the address of a chat endpoint is needed".to_owned(),
    };
    fill_missing(table, &required).into_iter().map(|field| (field, message(field))).collect()
}

fn model(builder: &Builder<'_>, table: Spanned<DeTable<'_>>, location: Location<'_>) -> Result<Model, FileError> {
    let fields = table.get_ref().clone();
    let location = Location { fields: &fields, ..location };
    let entry = Entry::deserialize(toml::de::Deserializer::from(table)).map_err(|error| {
        let mut mistake = toml_mistake(&error);
        // What is missing is missing in the whole table.
        mistake.at = mistake.at.or(Some(location.at));
        FileError::of_mistake(location.file, location.text, mistake, location.entry())
    })?;
    builder.model(&entry, &location)
}
