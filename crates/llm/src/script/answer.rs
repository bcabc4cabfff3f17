//! What a rule answers.

use std::time::{Duration, SystemTime};

use redial_proto::{ErrorClass, Failure, Finish, ReplyCall, TurnReply, Usage};
use regex::Captures;
use reqwest::{
    StatusCode,
    header::{HeaderMap, HeaderValue},
};
use serde_json::{Map, Value, json};

use super::{moment::Moment, template::Template};
use crate::{
    answer,
    api::{Api, Piece},
    http::failure,
    model::Watch,
    react,
};

/// An answer, and how it comes.
pub(super) struct Answer {
    pub(super) says: Says,
    pub(super) usage: Usage,
    /// The time that it takes.
    pub(super) delay: Duration,
    /// Pieces in which watchers get it; 0: not before it is whole.
    pub(super) chunks: usize,
}

/// What is answered.
pub(super) enum Says {
    Reply {
        text: Option<Template>,
        thought: Option<Template>,
        calls: Vec<(String, Arguments)>,
        finish: Option<Finish>,
        /// The text is read as a ReAct text.
        react: bool,
    },
    Body {
        /// None: a ReAct text.
        api: Option<Api>,
        body: Template,
    },
    Class(Failure),
    Status {
        status: StatusCode,
        message: String,
        retry_after_ms: Option<u64>,
    },
}

/// Arguments of a call.
pub(super) enum Arguments {
    /// Any text.
    Raw(Template),
    /// An object with texts to fill in.
    Object(Map<String, Value>),
}

type Found<'a, 'm> = Option<&'a Captures<'m>>;

impl Answer {
    pub(super) fn reply(&self, moment: &Moment<'_>, captures: Found<'_, '_>) -> Result<TurnReply, Failure> {
        let reply = match &self.says {
            Says::Class(failure) => Err(failure.clone()),
            Says::Status { status, message, retry_after_ms } => Err(answered(*status, message, *retry_after_ms)),
            Says::Body { api, body } => {
                let body = body.fill(moment, captures).map_err(failure::configuration)?;
                read(*api, &body, moment)
            }
            Says::Reply { .. } => self.said(moment, captures).map_err(failure::configuration),
        };
        reply.map(|mut reply| {
            if self.usage != Usage::default() {
                reply.usage = self.usage;
            }
            if reply.model.is_empty() {
                "script".clone_into(&mut reply.model);
            }
            reply
        })
    }

    /// True if the failure is not the one that the rule wants.
    pub(super) fn is_broken(&self, failure: &Failure) -> bool {
        failure.class == ErrorClass::Configuration && matches!(self.says, Says::Reply { .. } | Says::Body { .. })
    }

    /// Lets the time pass, and shows pieces meanwhile.
    pub(super) async fn pace(&self, reply: Option<&TurnReply>, watch: Watch<'_>) {
        let pieces = reply.map(|reply| pieces(reply, self.chunks)).unwrap_or_default();
        let steps = u32::try_from(pieces.len().max(1)).unwrap_or(u32::MAX);
        for piece in pieces {
            tokio::time::sleep(self.delay / steps).await;
            watch(piece);
        }
        if steps == 1 && self.chunks == 0 {
            tokio::time::sleep(self.delay).await;
        }
    }

    fn said(&self, moment: &Moment<'_>, captures: Found<'_, '_>) -> Result<TurnReply, String> {
        let Says::Reply { text, thought, calls, finish, react } = &self.says else { return Ok(TurnReply::default()) };
        let fill = |template: &Option<Template>| template.as_ref().map(|t| t.fill(moment, captures)).transpose();
        let (text, thought) = (fill(text)?, fill(thought)?);
        let calls = calls.iter().map(|(name, arguments)| {
            let arguments = arguments.fill(moment, captures)?;
            Ok(ReplyCall { name: name.clone(), arguments })
        });
        let calls: Vec<ReplyCall> = calls.collect::<Result<_, String>>()?;
        if *react && calls.is_empty() {
            let mut reply = react::read(&text.unwrap_or_default(), moment.request, *finish == Some(Finish::Length));
            reply.thought = thought.or(reply.thought);
            return Ok(reply);
        }
        let natural = if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        Ok(TurnReply { text, thought, calls, finish: finish.unwrap_or(natural), ..TurnReply::default() })
    }
}

impl Arguments {
    fn fill(&self, moment: &Moment<'_>, captures: Found<'_, '_>) -> Result<String, String> {
        match self {
            Self::Raw(text) => text.fill(moment, captures),
            Self::Object(object) => {
                let filled = object.iter().map(|(key, value)| Ok((key.clone(), filled(value, moment, captures)?)));
                Ok(Value::Object(filled.collect::<Result<_, String>>()?).to_string())
            }
        }
    }
}

fn filled(value: &Value, moment: &Moment<'_>, captures: Found<'_, '_>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Template::parse(text)?.fill_value(moment, captures)?,
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| filled(item, moment, captures)).collect::<Result<_, _>>()?)
        }
        Value::Object(object) => {
            let pairs = object.iter().map(|(key, value)| Ok((key.clone(), filled(value, moment, captures)?)));
            Value::Object(pairs.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

/// The error that a provider's status would have become.
fn answered(status: StatusCode, message: &str, retry_after_ms: Option<u64>) -> Failure {
    let pause = retry_after_ms.map(|ms| ("retry-after-ms".parse(), HeaderValue::from(ms)));
    let headers: HeaderMap = pause.into_iter().filter_map(|(name, value)| Some((name.ok()?, value))).collect();
    let body = if message.is_empty() { String::new() } else { json!({"error": {"message": message}}).to_string() };
    failure::response(status, &headers, body.as_bytes(), SystemTime::UNIX_EPOCH)
}

/// A raw body, through the parser of its provider; a stream of events as well.
fn read(api: Option<Api>, body: &str, moment: &Moment<'_>) -> Result<TurnReply, Failure> {
    let Some(api) = api else { return Ok(react::read(body, moment.request, false)) };
    let streamed = ["data:", "event:"].iter().any(|field| body.trim_start().starts_with(field));
    answer::read(api, moment.request, body.trim_start().as_bytes(), streamed)
}

fn pieces(reply: &TurnReply, chunks: usize) -> Vec<Piece> {
    let split = |text: &str| -> Vec<String> {
        let signs: Vec<char> = text.chars().collect();
        let length = signs.len().div_ceil(chunks.max(1)).max(1);
        signs.chunks(length).map(|part| part.iter().collect()).collect()
    };
    if chunks == 0 {
        return Vec::new();
    }
    let thoughts = split(reply.thought.as_deref().unwrap_or_default()).into_iter();
    let texts = split(reply.text.as_deref().unwrap_or_default()).into_iter();
    let thoughts = thoughts.map(|thought| Piece { thought, ..Piece::default() });
    thoughts.chain(texts.map(|text| Piece { text, ..Piece::default() })).collect()
}
