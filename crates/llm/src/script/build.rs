//! Builds rules from the entries of a script.

use std::time::Duration;

use redial_proto::{Failure, TurnUsage, duration};
use reqwest::StatusCode;
use serde_json::Value;

use super::{
    file::{BodyFormat, CallEntry, Entry, ErrorEntry},
    response::{Arguments, Content, Response},
    rule::Rule,
    template::Template,
    when::Pattern,
};
use crate::api::Api;

/// Most pieces of one answer.
const MAX_CHUNKS: u32 = 10_000;
/// The key under which the TOML reader returns a date without quotes.
const TOML_DATE: &str = "$__toml_private_datetime";

/// The path of a field, and what is wrong with it; an empty path means the whole rule.
pub(super) type Mistake = (&'static str, String);

/// Builds the rule of an entry; `react` is the style of the whole script.
pub(super) fn build(mut entry: Entry, name: String, react: bool) -> Result<Rule, Mistake> {
    if entry.times == Some(0) {
        return Err(("times", "0 is not allowed; allowed: 1 or more".to_owned()));
    }
    let chunks = entry.chunks.unwrap_or(0);
    if chunks > MAX_CHUNKS {
        return Err(("chunks", format!("{chunks} is not allowed; allowed: up to {MAX_CHUNKS}")));
    }
    let usage = entry.usage.unwrap_or_default();
    let delay =
        entry.delay.as_deref().map(duration::parse_positive).transpose().map_err(|message| ("delay", message))?;
    let (when, times) = (std::mem::take(&mut entry.when), entry.times);
    for (field, pattern) in [("when.matches", &when.matches), ("when.user_matches", &when.user_matches)] {
        if let Some(Pattern(Err(message))) = pattern {
            return Err((field, message.clone()));
        }
    }
    let response = Response {
        content: content(entry, react)?,
        usage: TurnUsage {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            ..TurnUsage::default()
        },
        delay: delay.unwrap_or(Duration::ZERO),
        chunks: usize::try_from(chunks).unwrap_or_default(),
    };
    Ok(Rule { name, when, times, response })
}

fn content(entry: Entry, react: bool) -> Result<Content, Mistake> {
    let said = entry.text.is_some() || entry.calls.is_some();
    if u8::from(said) + u8::from(entry.error.is_some()) + u8::from(entry.body.is_some()) != 1 {
        return Err((
            "",
            "exactly one answer is needed: `text` or `calls` (or both), or `error`, or `body`".to_owned(),
        ));
    }
    if !said && (entry.thought.is_some() || entry.finish.is_some()) {
        return Err(("thought", "`thought` and `finish` are allowed only with `text` and `calls`".to_owned()));
    }
    if entry.api.is_some() && entry.body.is_none() {
        return Err(("api", "is allowed only with `body`".to_owned()));
    }
    if let Some(error) = entry.error {
        return failing(error);
    }
    if let Some(body) = entry.body {
        return raw(&body, entry.api, react);
    }
    let template = |field: &'static str, text: Option<String>| {
        text.as_deref().map(Template::parse).transpose().map_err(|message| (field, message))
    };
    let calls = entry.calls.unwrap_or_default().into_iter().map(call).collect::<Result<_, _>>()?;
    Ok(Content::Reply {
        text: template("text", entry.text)?,
        thought: template("thought", entry.thought)?,
        calls,
        finish: entry.finish,
        react,
    })
}

fn call(entry: CallEntry) -> Result<(String, Arguments), Mistake> {
    let arguments = match entry.arguments {
        None => Arguments::Object(serde_json::Map::new()),
        Some(Value::String(text)) => {
            Arguments::Raw(Template::parse(&text).map_err(|message| ("calls.arguments", message))?)
        }
        Some(Value::Object(object)) => {
            object.values().try_for_each(check).map_err(|message| ("calls.arguments", message))?;
            Arguments::Object(object)
        }
        Some(other) => {
            return Err((
                "calls.arguments",
                format!("{other} is not allowed; allowed: a table, or any text in quotes"),
            ));
        }
    };
    Ok((entry.name, arguments))
}

/// Checks that every string in the value is a valid template.
fn check(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => Template::parse(text).map(|_| ()),
        Value::Array(items) => items.iter().try_for_each(check),
        Value::Object(object) if object.contains_key(TOML_DATE) => Err("a date needs quotes".to_owned()),
        Value::Object(object) => object.values().try_for_each(check),
        _ => Ok(()),
    }
}

fn raw(body: &Value, api: Option<BodyFormat>, react: bool) -> Result<Content, Mistake> {
    let api = match api {
        Some(BodyFormat::Openai) => Some(Api::OpenAi),
        Some(BodyFormat::Anthropic) => Some(Api::Anthropic),
        Some(BodyFormat::React) => None,
        None if react => None,
        None => return Err(("api", "is missing; allowed: openai, anthropic, react".to_owned())),
    };
    let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    Ok(Content::Body { api, body: Template::parse(&text).map_err(|message| ("body", message))? })
}

fn failing(error: ErrorEntry) -> Result<Content, Mistake> {
    let pause = error.retry_after.as_deref().map(duration::parse_ms).transpose();
    let pause = pause.map_err(|message| ("error.retry_after", message))?;
    let message = error.message.unwrap_or_default();
    match (error.class, error.status) {
        (Some(class), None) => {
            let message = if message.is_empty() { format!("the script reports {class}") } else { message };
            let mut failure = Failure::new(class, message);
            failure.retry_after_ms = pause;
            Ok(Content::Class(failure))
        }
        (None, Some(status)) => {
            let known = StatusCode::from_u16(status).ok().filter(|status| !status.is_success());
            let status = known.ok_or_else(|| ("error.status", format!("{status} is not an error status")))?;
            Ok(Content::Status { status, message, retry_after_ms: pause })
        }
        _ => Err(("error", "either `class` or `status` is needed".to_owned())),
    }
}
