//! The response of a rule.

use std::time::{Duration, SystemTime};

use redial_proto::{ErrorClass, Failure, Finish, ReplyCall, TurnReply, TurnUsage};
use regex::Captures;
use reqwest::{
    StatusCode,
    header::{HeaderMap, HeaderValue},
};
use serde_json::{Map, Value, json};

use super::{context::Context, template::Template};
use crate::{
    api::Api,
    failure,
    piece::{Piece, Watch},
    react, response,
};

/// What a rule answers, and how it is delivered.
pub(super) struct Response {
    pub(super) content: Content,
    pub(super) usage: TurnUsage,
    /// How long the response takes.
    pub(super) delay: Duration,
    /// Number of pieces that watchers receive; 0 means none.
    pub(super) chunks: usize,
}

pub(super) enum Content {
    Reply {
        text: Option<Template>,
        thought: Option<Template>,
        calls: Vec<(String, Arguments)>,
        finish: Option<Finish>,
        /// The text is parsed as ReAct.
        react: bool,
    },
    Body {
        /// `None` for ReAct text.
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

pub(super) enum Arguments {
    /// Any text.
    Raw(Template),
    /// An object whose strings are templates.
    Object(Map<String, Value>),
}

type Matched<'a, 'm> = Option<&'a Captures<'m>>;

impl Response {
    pub(super) fn reply(&self, context: &Context<'_>, captures: Matched<'_, '_>) -> Result<TurnReply, Failure> {
        let reply = match &self.content {
            Content::Class(failure) => Err(failure.clone()),
            Content::Status { status, message, retry_after_ms } => {
                Err(status_failure(*status, message, *retry_after_ms))
            }
            Content::Body { api, body } => {
                let body = body.fill(context, captures).map_err(failure::configuration)?;
                read(*api, &body, context)
            }
            Content::Reply { .. } => self.said(context, captures).map_err(failure::configuration),
        };
        reply.map(|mut reply| {
            if self.usage != TurnUsage::default() {
                reply.usage = self.usage;
            }
            if reply.model.is_empty() {
                "script".clone_into(&mut reply.model);
            }
            reply
        })
    }

    /// True if the failure is a mistake in the rule, not the failure that it declares.
    pub(super) fn is_broken(&self, failure: &Failure) -> bool {
        failure.class == ErrorClass::Configuration
            && matches!(self.content, Content::Reply { .. } | Content::Body { .. })
    }

    /// Waits for the delay, and sends the pieces meanwhile.
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

    fn said(&self, context: &Context<'_>, captures: Matched<'_, '_>) -> Result<TurnReply, String> {
        let Content::Reply { text, thought, calls, finish, react } = &self.content else {
            return Ok(TurnReply::default());
        };
        let fill = |template: &Option<Template>| template.as_ref().map(|t| t.fill(context, captures)).transpose();
        let (text, thought) = (fill(text)?, fill(thought)?);
        let calls = calls.iter().map(|(name, arguments)| {
            let arguments = arguments.fill(context, captures)?;
            Ok(ReplyCall { name: name.clone(), arguments })
        });
        let calls: Vec<ReplyCall> = calls.collect::<Result<_, String>>()?;
        if *react && calls.is_empty() {
            let mut reply = react::read(&text.unwrap_or_default(), context.request, *finish == Some(Finish::Length));
            reply.thought = thought.or(reply.thought);
            return Ok(reply);
        }
        let default = if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        Ok(TurnReply { text, thought, calls, finish: finish.unwrap_or(default), ..TurnReply::default() })
    }
}

impl Arguments {
    fn fill(&self, context: &Context<'_>, captures: Matched<'_, '_>) -> Result<String, String> {
        match self {
            Self::Raw(text) => text.fill(context, captures),
            Self::Object(object) => {
                let filled = object.iter().map(|(key, value)| Ok((key.clone(), filled(value, context, captures)?)));
                Ok(Value::Object(filled.collect::<Result<_, String>>()?).to_string())
            }
        }
    }
}

fn filled(value: &Value, context: &Context<'_>, captures: Matched<'_, '_>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Template::parse(text)?.fill_value(context, captures)?,
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| filled(item, context, captures)).collect::<Result<_, _>>()?)
        }
        Value::Object(object) => {
            let pairs = object.iter().map(|(key, value)| Ok((key.clone(), filled(value, context, captures)?)));
            Value::Object(pairs.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

/// Makes the failure for a provider's error status.
fn status_failure(status: StatusCode, message: &str, retry_after_ms: Option<u64>) -> Failure {
    let pause = retry_after_ms.map(|ms| ("retry-after-ms".parse(), HeaderValue::from(ms)));
    let headers: HeaderMap = pause.into_iter().filter_map(|(name, value)| Some((name.ok()?, value))).collect();
    let body = if message.is_empty() { String::new() } else { json!({"error": {"message": message}}).to_string() };
    failure::response(status, &headers, body.as_bytes(), SystemTime::UNIX_EPOCH)
}

/// Parses a raw body, which may be a stream of events, as its provider's response.
fn read(api: Option<Api>, body: &str, context: &Context<'_>) -> Result<TurnReply, Failure> {
    let Some(api) = api else { return Ok(react::read(body, context.request, false)) };
    let streamed = ["data:", "event:"].iter().any(|field| body.trim_start().starts_with(field));
    response::read(api, context.request, body.trim_start().as_bytes(), streamed)
}

fn pieces(reply: &TurnReply, chunks: usize) -> Vec<Piece> {
    let split = |text: &str| -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        let length = chars.len().div_ceil(chunks.max(1)).max(1);
        chars.chunks(length).map(|part| part.iter().collect()).collect()
    };
    if chunks == 0 {
        return Vec::new();
    }
    let thoughts = split(reply.thought.as_deref().unwrap_or_default()).into_iter();
    let texts = split(reply.text.as_deref().unwrap_or_default()).into_iter();
    let thoughts = thoughts.map(|thought| Piece { thought, ..Piece::default() });
    thoughts.chain(texts.map(|text| Piece { text, ..Piece::default() })).collect()
}
