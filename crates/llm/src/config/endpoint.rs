//! The endpoint of a model: its URL and headers, with secrets from the environment.

use redial_files::{FileError, Location};
use redial_redaction::Secrets;
use reqwest::{
    Url,
    header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING},
};
use secrecy::SecretString;
use toml::Spanned;

use super::{
    build::{Builder, has_key},
    file::Entry,
    variables::{self, Filled},
};
use crate::{api::Api, failure, http::Endpoint};

/// A header value of at least this many bytes is treated as a secret, even a constant one.
const MIN_SECRET: usize = 6;

impl Builder<'_> {
    pub(super) fn endpoint(
        &self,
        entry: &Entry,
        api: Api,
        url: Url,
        location: &Location<'_>,
    ) -> Result<Endpoint, FileError> {
        let mut collected = Collected::default();
        if let Some(name) = &entry.key_env {
            variables::check_name(name.get_ref()).map_err(|message| location.field_error(name, "key_env", message))?;
            collected.key(api, name.get_ref(), (self.variable)(name.get_ref()).filter(|key| !key.is_empty()));
        }
        for (name, value) in &entry.headers {
            self.header(name, value, &mut collected, location)?;
        }
        for (name, value) in api.headers() {
            collected.headers.entry(name).or_insert(value);
        }
        let headers = match collected.problem {
            Some(problem) => Err(failure::configuration(problem)),
            None => Ok(collected.headers),
        };
        let route = self.http.route(&url, has_key(entry));
        Ok(Endpoint { route, url, headers, secrets: Secrets::new(&collected.secrets) })
    }

    fn header(
        &self,
        name: &Spanned<String>,
        value: &Spanned<String>,
        collected: &mut Collected,
        location: &Location<'_>,
    ) -> Result<(), FileError> {
        let field = format!("headers.{}", name.get_ref());
        let wrong = |message: String| location.field_error(value, &field, message);
        let parsed = header_name(name.get_ref()).map_err(|message| location.field_error(name, &field, message))?;
        match variables::fill(value.get_ref(), self.variable).map_err(wrong)? {
            Filled::Missing(variable) => collected.missing(&variable),
            Filled::Complete { text, values } => collected.header(parsed, text, values).map_err(wrong)?,
        }
        Ok(())
    }
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    let name: HeaderName = name
        .parse()
        .map_err(|_| "is not a header name; allowed: letters, digits and a few symbols such as \"-\"".to_owned())?;
    if [HOST, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING, CONNECTION].contains(&name) {
        return Err("is set by the HTTP client and cannot be declared".to_owned());
    }
    Ok(name)
}

/// Headers and secrets that were collected so far.
#[derive(Default)]
struct Collected {
    headers: HeaderMap,
    secrets: Vec<SecretString>,
    /// Why the model cannot be asked.
    problem: Option<String>,
}

impl Collected {
    fn key(&mut self, api: Api, variable: &str, key: Option<String>) {
        let Some(key) = key else { return self.missing(variable) };
        let key = key.trim().to_owned();
        let (name, value) = api.key(&key);
        match HeaderValue::from_str(&value) {
            Ok(value) => self.insert(name, value),
            Err(_) => self
                .problem(format!("environment variable {variable} contains characters that a header cannot contain")),
        }
        self.secrets.push(key.into());
    }

    /// Adds a declared header; `values` are those of the variables in `text`. Only a value without variables can be a
    /// mistake in the file; any other one is a problem of the environment.
    fn header(&mut self, name: HeaderName, text: String, values: Vec<String>) -> Result<(), String> {
        let from_environment = !values.is_empty();
        self.secrets.extend(values.into_iter().map(SecretString::from));
        match HeaderValue::from_str(&text) {
            Ok(value) => self.insert(name, value),
            Err(_) if from_environment => {
                self.problem(format!("a variable of header {name} contains characters that a header cannot contain"));
            }
            Err(_) => return Err("a header can contain only visible ASCII characters".to_owned()),
        }
        // A short constant such as a version is not a secret, and redacting it would garble every message.
        if from_environment || text.len() >= MIN_SECRET {
            self.secrets.push(text.into());
        }
        Ok(())
    }

    fn insert(&mut self, name: HeaderName, mut value: HeaderValue) {
        value.set_sensitive(true);
        self.headers.insert(name, value);
    }

    fn missing(&mut self, variable: &str) {
        self.problem(format!("environment variable {variable} is not set"));
    }

    fn problem(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }
}
