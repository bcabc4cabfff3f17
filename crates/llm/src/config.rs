//! `models.toml`: the models that a worker can ask.
//!
//! Everything that can be wrong in the file is found here, before the first turn, and named by file, line, model and
//! field. Only a variable that is not set waits until the model is asked: the other models work without it.

mod build;
mod endpoint;
mod error;
mod file;
mod variables;

use std::{fs, path::Path};

use self::{
    build::Builder,
    error::Place,
    file::{Entry, File},
};
use crate::Model;

pub use error::ModelsError;
pub(crate) use error::line_of;

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
        let place = Place { file: path, text: &text, at: name.span().start, model: name.into_inner() };
        builder.model(&entry, &place)
    };
    file.models.into_iter().map(model).collect()
}
