//! Builds a model from an entry of the file.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use redial_files::{FileError, Location};
use redial_http::Http;
use redial_http::is_loopback;
use redial_proto::{
    RetryPolicy, ToolEffect, ToolSpec,
    tool::{parse_retry_time, parse_timeout},
    turn,
};
use reqwest::Url;
use toml::Spanned;

use super::file::{Chat, Entry, Provider, Retry};
use crate::{
    api::Api,
    http,
    model::{Backend, ChatModel, Model, Prices},
    profile::Profile,
    script::Script,
    settings::Settings,
};

/// Largest accepted limit.
const MAX_CONCURRENCY: u32 = 100_000;
/// Default timeout of one request; longer than that of tools.
const TIMEOUT_MS: u64 = 120_000;
/// Largest accepted answer limit in tokens; no provider allows more.
const MAX_TOKENS: u32 = 1_000_000;

pub(super) struct Builder<'a> {
    /// The file's folder; paths of scripts are relative to it.
    folder: &'a Path,
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(super) http: Http,
    /// What is wrong in the scripts, which are read once however many models name them.
    scripts: RefCell<WrongScripts>,
}

#[derive(Default)]
struct WrongScripts {
    files: BTreeSet<PathBuf>,
    errors: Vec<FileError>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(folder: &'a Path, variable: &'a dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let http = Http::new(http::CONNECT_TIMEOUT, variable);
        let http = http.map_err(|error| format!("the HTTP client could not be created: {error}"))?;
        Ok(Self { folder, variable, http, scripts: RefCell::default() })
    }

    /// Returns what is wrong in the scripts of the models that were built.
    pub(super) fn script_errors(self) -> Vec<FileError> {
        self.scripts.into_inner().errors
    }

    pub(super) fn model(&self, entry: &Entry, location: &Location<'_>) -> Result<Model, FileError> {
        check_fields(entry, location)?;
        let backend = match entry.provider.get_ref() {
            Provider::Script => Backend::Script(self.script(entry, location)?),
            _ => Backend::Chat(Box::new(self.chat(entry, location)?)),
        };
        Ok(Model {
            name: location.name.unwrap_or_default().to_owned(),
            spec: spec(entry, location)?,
            concurrency: concurrency(entry, location)?,
            prices: prices(entry, location)?,
            backend: backend.into(),
        })
    }

    /// Returns the script; one without rules for a file with mistakes, which are kept, so that the model's other fields
    /// are checked as well.
    fn script(&self, entry: &Entry, location: &Location<'_>) -> Result<Script, FileError> {
        let Some(file) = &entry.script else { return Ok(Script::default()) };
        let path = self.folder.join(file.get_ref());
        if !path.is_file() {
            return Err(location.field_error(file, "script", format!("{} is not a file", path.display())));
        }
        if self.scripts.borrow().files.contains(&path) {
            return Ok(Script::default());
        }
        Ok(Script::load(&path).unwrap_or_else(|errors| {
            let mut wrong = self.scripts.borrow_mut();
            wrong.files.insert(path);
            wrong.errors.extend(errors);
            Script::default()
        }))
    }

    fn chat(&self, entry: &Entry, location: &Location<'_>) -> Result<ChatModel, FileError> {
        let provider = *entry.provider.get_ref();
        let chat = entry.api.as_ref().map(Spanned::get_ref).copied().unwrap_or_default();
        let api = match (provider, chat) {
            (Provider::Anthropic, _) | (Provider::React, Chat::Anthropic) => Api::Anthropic,
            _ => Api::OpenAi,
        };
        let url = url(entry, provider, api, location)?;
        check_encryption(entry, &url, location)?;
        let endpoint = self.endpoint(entry, api, url, location)?;
        Ok(ChatModel { api, react: provider == Provider::React, settings: settings(entry, location)?, endpoint })
    }
}

/// Refuses fields that the provider would ignore.
fn check_fields(entry: &Entry, location: &Location<'_>) -> Result<(), FileError> {
    let provider = entry.provider.get_ref();
    let script = *provider == Provider::Script;
    let chat = [
        ("model", entry.model.is_some()),
        ("base_url", entry.base_url.is_some()),
        ("key_env", entry.key_env.is_some()),
        ("headers", !entry.headers.is_empty()),
        ("insecure_http", entry.insecure_http),
        ("stream", entry.stream.is_some()),
        ("profile", entry.profile.is_some()),
        ("overrides", entry.overrides.is_some()),
        ("extra", entry.extra.is_some()),
        ("max_tokens", entry.max_tokens.is_some()),
        ("temperature", entry.temperature.is_some()),
    ];
    if let Some((field, _)) = chat.into_iter().find(|(_, present)| script && *present) {
        return Err(
            location.error(field, "is not allowed for provider \"script\", whose script file defines the answers")
        );
    }
    if let Some(file) = entry.script.as_ref().filter(|_| !script) {
        return Err(location.field_error(file, "script", "is allowed only for provider \"script\""));
    }
    if let Some(api) = entry.api.as_ref().filter(|_| *provider != Provider::React) {
        return Err(location.field_error(api, "api", "is allowed only for provider \"react\""));
    }
    let anthropic =
        *provider == Provider::Anthropic || entry.api.as_ref().is_some_and(|api| *api.get_ref() == Chat::Anthropic);
    if let Some(profile) = entry.profile.as_ref().filter(|_| anthropic) {
        return Err(location.field_error(profile, "profile", "is allowed only for the chat completions interface"));
    }
    if let Some(overrides) = entry.overrides.as_ref().filter(|_| anthropic) {
        return Err(location.field_error(overrides, "overrides", "is allowed only for the chat completions interface"));
    }
    Ok(())
}

fn url(entry: &Entry, provider: Provider, api: Api, location: &Location<'_>) -> Result<Url, FileError> {
    let Some(base) = &entry.base_url else {
        return match provider {
            Provider::Openai => parse_url(api, "https://api.openai.com/v1").map_err(|m| location.error("base_url", m)),
            Provider::Anthropic => {
                parse_url(api, "https://api.anthropic.com").map_err(|m| location.error("base_url", m))
            }
            _ => Err(location.error("base_url", "is missing; the address of a chat endpoint is needed")),
        };
    };
    parse_url(api, base.get_ref()).map_err(|message| location.field_error(base, "base_url", message))
}

/// True if requests have something in them that is for the provider only. Every header counts: most of them are keys,
/// and none is for others.
pub(super) fn has_key(entry: &Entry) -> bool {
    entry.key_env.is_some() || !entry.headers.is_empty()
}

/// Refuses to send a key over a network unencrypted.
fn check_encryption(entry: &Entry, url: &Url, location: &Location<'_>) -> Result<(), FileError> {
    let this_machine = url.host_str().is_some_and(is_loopback);
    if url.scheme() == "https" || this_machine || entry.insecure_http || !has_key(entry) {
        return Ok(());
    }
    let message = "sends a key unencrypted; allowed: https, a host that is this machine (localhost, 127.0.0.1, ::1), or \
                   insecure_http = true if everyone on the way may read it";
    Err(match &entry.base_url {
        Some(base) => location.field_error(base, "base_url", message),
        None => location.error("base_url", message),
    })
}

fn parse_url(api: Api, base: &str) -> Result<Url, String> {
    let wrong = |why: &str| format!("{base:?} {why}; allowed: an address such as \"https://api.example.com/v1\"");
    let url: Url = base.parse().map_err(|_| wrong("is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("is not an http or https address"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("contains a user name or password; keys come from `key_env` or `headers`".to_owned());
    }
    if url.fragment().is_some() || url.query().is_some() {
        return Err(wrong("has a query or fragment"));
    }
    api.url(base.trim_end_matches('/')).parse().map_err(|_| wrong("is not a URL"))
}

fn settings(entry: &Entry, location: &Location<'_>) -> Result<Settings, FileError> {
    let Some(model) = entry.model.as_ref().filter(|model| !model.get_ref().trim().is_empty()) else {
        return Err(location.error("model", "is missing; the provider's own name of the model is needed"));
    };
    if let Some(tokens) = entry.max_tokens.as_ref().filter(|tokens| !(1..=MAX_TOKENS).contains(tokens.get_ref())) {
        let message = format!("{} is not allowed; allowed: 1 to {MAX_TOKENS}", tokens.get_ref());
        return Err(location.field_error(tokens, "max_tokens", message));
    }
    if let Some(value) = entry.temperature.as_ref().filter(|value| !(0.0..=2.0).contains(value.get_ref())) {
        return Err(location.field_error(
            value,
            "temperature",
            format!("{} is not allowed; allowed: 0 to 2", value.get_ref()),
        ));
    }
    Ok(Settings {
        model: model.get_ref().clone(),
        max_tokens: entry.max_tokens.as_ref().map(|tokens| *tokens.get_ref()),
        temperature: entry.temperature.as_ref().map(|value| *value.get_ref()),
        stream: entry.stream.as_ref().is_none_or(|stream| *stream.get_ref()),
        profile: profile(entry, location)?,
        extra: entry.extra.as_ref().map(|extra| extra.get_ref().clone()).unwrap_or_default(),
    })
}

fn profile(entry: &Entry, location: &Location<'_>) -> Result<Profile, FileError> {
    let named = match &entry.profile {
        None => Profile::default(),
        Some(name) => Profile::named(name.get_ref()).ok_or_else(|| {
            let message = format!("{:?} is not a profile; allowed: {}", name.get_ref(), Profile::NAMES.join(", "));
            location.field_error(name, "profile", message)
        })?,
    };
    Ok(named.with(entry.overrides.as_ref().map(|overrides| *overrides.get_ref()).unwrap_or_default()))
}

fn spec(entry: &Entry, location: &Location<'_>) -> Result<ToolSpec, FileError> {
    let mut spec = ToolSpec::named("model");
    spec.description.clone_from(&entry.description);
    spec.effect = ToolEffect::Idempotent;
    turn::POOL.clone_into(&mut spec.pool);
    spec.timeout_ms = TIMEOUT_MS;
    if let Some(timeout) = &entry.timeout {
        let read = parse_timeout(timeout.get_ref());
        spec.timeout_ms = read.map_err(|message| location.field_error(timeout, "timeout", message))?;
    }
    spec.retry = retry(&entry.retry, location)?;
    spec.retry_budget = entry.retry_budget;
    spec.check().map_err(|message| location.path_error(message))?;
    // The file's reader checks the name.
    spec.name = turn::tool_name(location.name.unwrap_or_default());
    Ok(spec)
}

fn concurrency(entry: &Entry, location: &Location<'_>) -> Result<Option<u32>, FileError> {
    let Some(limit) = &entry.concurrency else { return Ok(None) };
    if !(1..=MAX_CONCURRENCY).contains(limit.get_ref()) {
        let message = format!("{} is not allowed; allowed: 1 to {MAX_CONCURRENCY}", limit.get_ref());
        return Err(location.field_error(limit, "concurrency", message));
    }
    Ok(Some(*limit.get_ref()))
}

fn prices(entry: &Entry, location: &Location<'_>) -> Result<Option<Prices>, FileError> {
    let price = |value: &Option<Spanned<f64>>, field: &str| match value {
        Some(price) if !(0.0..=1_000_000.0).contains(price.get_ref()) => {
            let message =
                format!("{} is not allowed; allowed: US dollars per million tokens, 0 or more", price.get_ref());
            Err(location.field_error(price, field, message))
        }
        Some(price) => Ok(Some(*price.get_ref())),
        None => Ok(None),
    };
    let (input, output) = (price(&entry.input_price, "input_price")?, price(&entry.output_price, "output_price")?);
    let is_free = *entry.provider.get_ref() == Provider::Script;
    let has_price = is_free || input.is_some() || output.is_some();
    Ok(has_price.then(|| Prices { input: input.unwrap_or_default(), output: output.unwrap_or_default() }))
}

fn retry(retry: &Retry, location: &Location<'_>) -> Result<RetryPolicy, FileError> {
    let default = RetryPolicy::default();
    let ms = |value: &Option<Spanned<String>>, field: &str, default: u64| match value {
        Some(text) => parse_retry_time(text.get_ref()).map_err(|message| location.field_error(text, field, message)),
        None => Ok(default),
    };
    Ok(RetryPolicy {
        initial_ms: ms(&retry.initial, "retry.initial", default.initial_ms)?,
        factor: retry.factor.unwrap_or(default.factor),
        cap_ms: ms(&retry.cap, "retry.cap", default.cap_ms)?,
        max_attempts: retry.max_attempts.unwrap_or(default.max_attempts),
        deadline_ms: ms(&retry.deadline, "retry.deadline", default.deadline_ms)?,
    })
}
