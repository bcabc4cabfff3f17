//! The two chat interfaces that providers speak.

use redial_proto::{Failure, TurnReply, TurnRequest};
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde_json::Value;

use crate::{Settings, anthropic, openai};

/// A chat interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    /// Chat completions.
    OpenAi,
    /// Messages.
    Anthropic,
}

/// A piece of an answer that is being written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) thought: String,
}

/// An answer that comes in events; at the end it is the body that would have come at once.
pub(crate) enum Stream {
    OpenAi(openai::Stream),
    Anthropic(anthropic::Stream),
}

impl Api {
    /// The full address, from the base without a slash at its end.
    pub(crate) fn url(self, base: &str) -> String {
        match self {
            Self::OpenAi => format!("{base}/chat/completions"),
            Self::Anthropic => format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base)),
        }
    }

    /// The header that carries the key.
    pub(crate) fn key(self, key: &str) -> (HeaderName, String) {
        match self {
            Self::OpenAi => (AUTHORIZATION, format!("Bearer {key}")),
            Self::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
        }
    }

    /// Headers that every request needs.
    pub(crate) fn headers(self) -> Vec<(HeaderName, HeaderValue)> {
        match self {
            Self::OpenAi => Vec::new(),
            Self::Anthropic => {
                vec![(HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"))]
            }
        }
    }

    pub(crate) fn request(self, request: &TurnRequest, settings: &Settings) -> Value {
        match self {
            Self::OpenAi => openai::request(request, settings),
            Self::Anthropic => anthropic::request(request, settings),
        }
    }

    /// Where a request says at which texts the model stops.
    pub(crate) const fn stop_field(self) -> &'static str {
        match self {
            Self::OpenAi => "stop",
            Self::Anthropic => "stop_sequences",
        }
    }

    /// None if the body is no answer of a model at all.
    pub(crate) fn reply(self, request: &TurnRequest, body: &Value) -> Option<TurnReply> {
        match self {
            Self::OpenAi => openai::reply(request, body),
            Self::Anthropic => anthropic::reply(request, body),
        }
    }

    pub(crate) fn stream(self) -> Stream {
        match self {
            Self::OpenAi => Stream::OpenAi(openai::Stream::default()),
            Self::Anthropic => Stream::Anthropic(anthropic::Stream::default()),
        }
    }
}

impl Stream {
    /// Takes one event; the failure is one that the provider told.
    pub(crate) fn event(&mut self, event: &Value) -> Result<Piece, Failure> {
        match self {
            Self::OpenAi(stream) => stream.event(event),
            Self::Anthropic(stream) => stream.event(event),
        }
    }

    /// True if nothing is missing.
    pub(crate) fn complete(&self) -> bool {
        match self {
            Self::OpenAi(stream) => stream.complete(),
            Self::Anthropic(stream) => stream.complete(),
        }
    }

    /// Bytes that were collected.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::OpenAi(stream) => stream.size(),
            Self::Anthropic(stream) => stream.size(),
        }
    }

    /// The body that would have come at once.
    pub(crate) fn body(self) -> Value {
        match self {
            Self::OpenAi(stream) => stream.body(),
            Self::Anthropic(stream) => stream.body(),
        }
    }
}
