//! One entry of the file → one model.

use std::path::Path;

use redial_proto::{Effect, RetryPolicy, ToolSpec, duration::parse_ms, turn};
use reqwest::{Client, Url};
use toml::Spanned;

use super::{
    ModelsError,
    error::Place,
    file::{Chat, Entry, Provider, Retry},
};
use crate::{
    Model, Profile, Settings,
    api::Api,
    http,
    model::{Backend, ChatModel, Prices},
    script::Script,
};

type Result<T> = std::result::Result<T, ModelsError>;

/// More is not a limit.
const MAX_CONCURRENCY: u32 = 100_000;
/// Models think longer than tools work.
const TIMEOUT_MS: u64 = 120_000;
/// No provider writes more in one answer.
const MAX_TOKENS: u32 = 1_000_000;

/// What all models of a file share.
pub(super) struct Builder<'a> {
    /// Where the file is; scripts stand relative to it.
    folder: &'a Path,
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(super) client: Client,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        folder: &'a Path,
        variable: &'a dyn Fn(&str) -> Option<String>,
    ) -> std::result::Result<Self, String> {
        let client = http::client().map_err(|error| format!("no HTTP client: {error}"))?;
        Ok(Self { folder, variable, client })
    }

    pub(super) fn model(&self, entry: &Entry, place: &Place<'_>) -> Result<Model> {
        only_what_fits(entry, place)?;
        let backend = match entry.provider.get_ref() {
            Provider::Script => Backend::Script(self.script(entry, place)?),
            _ => Backend::Chat(Box::new(self.chat(entry, place)?)),
        };
        Ok(Model {
            name: place.model.clone(),
            spec: spec(entry, place)?,
            concurrency: concurrency(entry, place)?,
            prices: prices(entry, place)?,
            backend: backend.into(),
        })
    }

    fn script(&self, entry: &Entry, place: &Place<'_>) -> Result<Script> {
        let Some(file) = &entry.script else {
            return Err(place.error("script", "is missing; the path of a file of rules is needed"));
        };
        let path = self.folder.join(file.get_ref());
        if !path.is_file() {
            return Err(place.wrong(file, "script", format!("{} is no file", path.display())));
        }
        Script::load(&path)
    }

    fn chat(&self, entry: &Entry, place: &Place<'_>) -> Result<ChatModel> {
        let provider = *entry.provider.get_ref();
        let chat = entry.api.as_ref().map(Spanned::get_ref).copied().unwrap_or_default();
        let api = match (provider, chat) {
            (Provider::Anthropic, _) | (Provider::React, Chat::Anthropic) => Api::Anthropic,
            _ => Api::OpenAi,
        };
        let endpoint = self.endpoint(entry, api, url(entry, provider, api, place)?, place)?;
        Ok(ChatModel { api, react: provider == Provider::React, settings: settings(entry, place)?, endpoint })
    }
}

/// A field that the provider does not know would be a wish that nobody hears.
fn only_what_fits(entry: &Entry, place: &Place<'_>) -> Result<()> {
    let provider = entry.provider.get_ref();
    let script = *provider == Provider::Script;
    let chat = [
        ("model", entry.model.is_some()),
        ("base_url", entry.base_url.is_some()),
        ("key_env", entry.key_env.is_some()),
        ("headers", !entry.headers.is_empty()),
        ("stream", entry.stream.is_some()),
        ("profile", entry.profile.is_some()),
        ("switches", entry.switches.is_some()),
        ("extra", entry.extra.is_some()),
        ("max_tokens", entry.max_tokens.is_some()),
        ("temperature", entry.temperature.is_some()),
    ];
    if let Some((field, _)) = chat.into_iter().find(|(_, there)| script && *there) {
        return Err(place.error(field, "is not for provider \"script\"; its fields are in the script"));
    }
    if let Some(file) = entry.script.as_ref().filter(|_| !script) {
        return Err(place.wrong(file, "script", "is only for provider \"script\""));
    }
    if let Some(api) = entry.api.as_ref().filter(|_| *provider != Provider::React) {
        return Err(place.wrong(api, "api", "is only for provider \"react\""));
    }
    let anthropic =
        *provider == Provider::Anthropic || entry.api.as_ref().is_some_and(|api| *api.get_ref() == Chat::Anthropic);
    if let Some(profile) = entry.profile.as_ref().filter(|_| anthropic) {
        return Err(place.wrong(profile, "profile", "is only for the chat completions interface"));
    }
    if let Some(switches) = entry.switches.as_ref().filter(|_| anthropic) {
        return Err(place.wrong(switches, "switches", "is only for the chat completions interface"));
    }
    Ok(())
}

/// Where requests go.
fn url(entry: &Entry, provider: Provider, api: Api, place: &Place<'_>) -> Result<Url> {
    let Some(base) = &entry.base_url else {
        return match provider {
            Provider::Openai => parse_url(api, "https://api.openai.com/v1").map_err(|m| place.error("base_url", m)),
            Provider::Anthropic => parse_url(api, "https://api.anthropic.com").map_err(|m| place.error("base_url", m)),
            _ => Err(place.error("base_url", "is missing; the address of a chat endpoint is needed")),
        };
    };
    parse_url(api, base.get_ref()).map_err(|message| place.wrong(base, "base_url", message))
}

fn parse_url(api: Api, base: &str) -> std::result::Result<Url, String> {
    let wrong = |why: &str| format!("{base:?} {why}; allowed: an address such as \"https://api.example.com/v1\"");
    let url: Url = base.parse().map_err(|_| wrong("is no URL"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("is no http or https address"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user or password; keys come from `key_env` or `headers`".to_owned());
    }
    if url.fragment().is_some() || url.query().is_some() {
        return Err(wrong("has a query or fragment"));
    }
    api.url(base.trim_end_matches('/')).parse().map_err(|_| wrong("is no URL"))
}

fn settings(entry: &Entry, place: &Place<'_>) -> Result<Settings> {
    let Some(model) = entry.model.as_ref().filter(|model| !model.get_ref().trim().is_empty()) else {
        return Err(place.error("model", "is missing; the provider's own name of the model is needed"));
    };
    if let Some(tokens) = entry.max_tokens.as_ref().filter(|tokens| !(1..=MAX_TOKENS).contains(tokens.get_ref())) {
        let message = format!("{} is not allowed; allowed: 1 to {MAX_TOKENS}", tokens.get_ref());
        return Err(place.wrong(tokens, "max_tokens", message));
    }
    if let Some(value) = entry.temperature.as_ref().filter(|value| !(0.0..=2.0).contains(value.get_ref())) {
        return Err(place.wrong(value, "temperature", format!("{} is not allowed; allowed: 0 to 2", value.get_ref())));
    }
    Ok(Settings {
        model: model.get_ref().clone(),
        max_tokens: entry.max_tokens.as_ref().map(|tokens| *tokens.get_ref()),
        temperature: entry.temperature.as_ref().map(|value| *value.get_ref()),
        stream: entry.stream.as_ref().is_none_or(|stream| *stream.get_ref()),
        profile: profile(entry, place)?,
        extra: entry.extra.as_ref().map(|extra| extra.get_ref().clone()).unwrap_or_default(),
    })
}

fn profile(entry: &Entry, place: &Place<'_>) -> Result<Profile> {
    let named = match &entry.profile {
        None => Profile::default(),
        Some(name) => Profile::named(name.get_ref()).ok_or_else(|| {
            let message = format!("{:?} is no profile; allowed: {}", name.get_ref(), Profile::NAMES.join(", "));
            place.wrong(name, "profile", message)
        })?,
    };
    Ok(named.with(entry.switches.as_ref().map(|switches| *switches.get_ref()).unwrap_or_default()))
}

fn spec(entry: &Entry, place: &Place<'_>) -> Result<ToolSpec> {
    let mut spec = ToolSpec::named(turn::tool_name(&place.model));
    spec.description.clone_from(&entry.description);
    spec.effect = Effect::Idempotent;
    turn::POOL.clone_into(&mut spec.pool);
    spec.timeout_ms = milliseconds(entry.timeout.as_ref(), "timeout", TIMEOUT_MS, place)?;
    spec.retry = retry(&entry.retry, place)?;
    spec.check().map_err(|message| place.error("", message))?;
    Ok(spec)
}

fn concurrency(entry: &Entry, place: &Place<'_>) -> Result<Option<u32>> {
    let Some(limit) = &entry.concurrency else { return Ok(None) };
    if !(1..=MAX_CONCURRENCY).contains(limit.get_ref()) {
        let message = format!("{} is not allowed; allowed: 1 to {MAX_CONCURRENCY}", limit.get_ref());
        return Err(place.wrong(limit, "concurrency", message));
    }
    Ok(Some(*limit.get_ref()))
}

fn prices(entry: &Entry, place: &Place<'_>) -> Result<Prices> {
    let price = |value: &Option<Spanned<f64>>, field: &str| match value {
        Some(price) if !(0.0..=1_000_000.0).contains(price.get_ref()) => {
            let message =
                format!("{} is not allowed; allowed: US dollars per million tokens, 0 or more", price.get_ref());
            Err(place.wrong(price, field, message))
        }
        Some(price) => Ok(*price.get_ref()),
        None => Ok(0.0),
    };
    Ok(Prices { input: price(&entry.input_price, "input_price")?, output: price(&entry.output_price, "output_price")? })
}

fn retry(retry: &Retry, place: &Place<'_>) -> Result<RetryPolicy> {
    let default = RetryPolicy::default();
    Ok(RetryPolicy {
        initial_ms: milliseconds(retry.initial.as_ref(), "retry.initial", default.initial_ms, place)?,
        factor: retry.factor.unwrap_or(default.factor),
        cap_ms: milliseconds(retry.cap.as_ref(), "retry.cap", default.cap_ms, place)?,
        max_attempts: retry.max_attempts.unwrap_or(default.max_attempts),
        deadline_ms: milliseconds(retry.deadline.as_ref(), "retry.deadline", default.deadline_ms, place)?,
    })
}

fn milliseconds(text: Option<&Spanned<String>>, field: &str, default: u64, place: &Place<'_>) -> Result<u64> {
    let Some(text) = text else { return Ok(default) };
    parse_ms(text.get_ref()).map_err(|message| place.wrong(text, field, message))
}
