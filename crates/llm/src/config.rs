//! `models.toml`: the models that a worker can ask.
//!
//! Every mistake in the file is found when it is loaded, before the first turn, and reported with file, line, model and
//! field. Only a variable that is not set is reported later, when the model is asked: the other models work without it.

mod build;
mod endpoint;
mod file;
mod location;
mod variables;

use std::{fs, path::Path};

use self::{
    build::Builder,
    file::{Entry, File},
    location::Location,
};
use crate::{error::ModelsError, model::Model};

/// The models of a file. Secrets are read from the environment of this process.
pub fn load(path: &Path) -> Result<Vec<Model>, ModelsError> {
    load_with(path, &|name| std::env::var(name).ok())
}

/// The models of a file; `variable` gives the value of an environment variable.
pub fn load_with(path: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Model>, ModelsError> {
    let text = fs::read_to_string(path)
        .map_err(|error| ModelsError::of_file(path, format!("the file cannot be read: {error}")))?;
    let file: File = toml::from_str(&text).map_err(|error| ModelsError::of_syntax(path, &text, &error))?;
    let builder = Builder::new(path.parent().unwrap_or(Path::new(".")), variable)
        .map_err(|message| ModelsError::of_file(path, message))?;
    let model = |(name, entry): (toml::Spanned<String>, Entry)| {
        let location = Location { file: path, text: &text, at: name.span().start, model: name.into_inner() };
        builder.model(&entry, &location)
    };
    file.models.into_iter().map(model).collect()
}
