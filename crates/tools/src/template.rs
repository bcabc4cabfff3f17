//! `{{arguments.city}}` in URLs, headers, bodies, command lines and environments.
//!
//! Strict: a template that may fail for a call that passes the schema is an error when the manifest is loaded. A value is
//! encoded for its position (a part of a URL, a JSON string, one element of a command line) and can never become anything
//! else.

mod json;
mod scope;
mod text;
mod url;
mod values;
mod variable;

#[cfg(test)]
mod tests;

pub(crate) use json::JsonTemplate;
pub(crate) use scope::Scope;
pub(crate) use text::Template;
pub(crate) use url::UrlTemplate;
pub(crate) use values::{RefusedValue, Values};
