//! The headers of a model's requests, with the secrets from the environment.

use reqwest::{
    Url,
    header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING},
};
use toml::Spanned;

use super::{
    ModelsError,
    build::Builder,
    error::Place,
    file::Entry,
    variables::{self, Filled},
};
use crate::{
    api::Api,
    http::{Endpoint, Redaction, failure},
};

/// Bytes from which on the value of a header may be a secret, wherever it comes from.
const LONG: usize = 6;

impl Builder<'_> {
    pub(super) fn endpoint(
        &self,
        entry: &Entry,
        api: Api,
        url: Url,
        place: &Place<'_>,
    ) -> Result<Endpoint, ModelsError> {
        let mut found = Found::default();
        if let Some(name) = &entry.key_env {
            variables::check_name(name.get_ref()).map_err(|message| place.wrong(name, "key_env", message))?;
            found.key(api, name.get_ref(), (self.variable)(name.get_ref()).filter(|key| !key.is_empty()));
        }
        for (name, value) in &entry.headers {
            self.header(name, value, &mut found, place)?;
        }
        for (name, value) in api.headers() {
            found.headers.entry(name).or_insert(value);
        }
        let redaction = Redaction::new(&found.secrets, url.host_str().unwrap_or_default());
        let headers = match found.problem {
            Some(problem) => Err(failure::configuration(problem)),
            None => Ok(found.headers),
        };
        Ok(Endpoint { client: self.client.clone(), url, headers, redaction })
    }

    fn header(
        &self,
        name: &Spanned<String>,
        value: &Spanned<String>,
        found: &mut Found,
        place: &Place<'_>,
    ) -> Result<(), ModelsError> {
        let field = format!("headers.{}", name.get_ref());
        let parsed: HeaderName = name.get_ref().parse().map_err(|_| {
            place.wrong(name, &field, "is no name of a header; allowed: letters, digits and a few signs such as \"-\"")
        })?;
        if [HOST, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING, CONNECTION].contains(&parsed) {
            return Err(place.wrong(name, &field, "is set by the HTTP client and cannot be declared"));
        }
        match variables::fill(value.get_ref(), self.variable).map_err(|message| place.wrong(value, &field, message))? {
            Filled::Missing(variable) => found.missing(&variable),
            Filled::Whole { text, values } => {
                let from_environment = !values.is_empty();
                found.secrets.extend(values);
                // A short constant such as a version is no secret, and would blot out half of each message.
                found.secrets.extend(Some(text.clone()).filter(|text| from_environment || text.len() >= LONG));
                match HeaderValue::from_str(&text) {
                    Ok(value) => found.insert(parsed, value),
                    Err(_) if from_environment => {
                        found.problem(format!("a variable of header {parsed} holds what no header can carry"));
                    }
                    Err(_) => return Err(place.wrong(value, &field, "a header carries visible ASCII characters only")),
                }
            }
        }
        Ok(())
    }
}

/// What was found so far.
#[derive(Default)]
struct Found {
    headers: HeaderMap,
    secrets: Vec<String>,
    /// Why the model cannot be asked.
    problem: Option<String>,
}

impl Found {
    fn key(&mut self, api: Api, variable: &str, key: Option<String>) {
        let Some(key) = key else { return self.missing(variable) };
        let key = key.trim().to_owned();
        let (name, value) = api.key(&key);
        match HeaderValue::from_str(&value) {
            Ok(value) => self.insert(name, value),
            Err(_) => self.problem(format!("variable {variable} holds what no header can carry")),
        }
        self.secrets.push(key);
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
