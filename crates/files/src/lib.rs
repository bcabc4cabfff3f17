//! Mistakes in files and texts that people write: where each is, what was found, and what is allowed.
//!
//! A reader that stops at the first mistake makes its user start it once for each. These helpers find all of them, and
//! say them without the words of a parsing library. Pure: nothing here reads a file.

mod entry;
mod error;
mod json;
mod position;
mod toml;
mod words;

pub use crate::{
    entry::{Rules, fill_missing, is_misspelt, read_entry},
    error::{FileError, FileErrors, Location},
    json::{JsonMistake, json_mistake},
    position::{Place, Position, position_of},
    toml::{Entries, LIMIT, TomlMistake, entries, entries_beside, field_at, syntax_mistakes, toml_mistake},
    words::did_you_mean,
};
