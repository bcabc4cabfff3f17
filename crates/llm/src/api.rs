//! The two chat interfaces of providers.

use redial_proto::{Failure, TurnReply, TurnRequest};
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde_json::Value;

use crate::{anthropic, openai, piece::Piece, settings::Settings};

/// A chat interface of providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// The chat completions interface of OpenAI and many compatible servers.
    OpenAi,
    Anthropic,
}

/// A streamed response that is being put together.
pub(crate) enum Stream {
    OpenAi(openai::Stream),
    Anthropic(anthropic::Stream),
}

impl Api {
    /// Returns the full URL; `base` has no slash at its end.
    pub(crate) fn url(self, base: &str) -> String {
        match self {
            Self::OpenAi => format!("{base}/chat/completions"),
            Self::Anthropic => format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base)),
        }
    }

    /// Returns the header that carries the key.
    pub(crate) fn key(self, key: &str) -> (HeaderName, String) {
        match self {
            Self::OpenAi => (AUTHORIZATION, format!("Bearer {key}")),
            Self::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
        }
    }

    /// Returns the headers that every request needs.
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

    /// Returns the field of a request with the texts at which the model stops.
    pub(crate) const fn stop_field(self) -> &'static str {
        match self {
            Self::OpenAi => "stop",
            Self::Anthropic => "stop_sequences",
        }
    }

    /// Reads a reply; `None` if the body is not a model's response.
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
    /// Adds one event; fails with an error that the provider reported.
    pub(crate) fn event(&mut self, event: &Value) -> Result<Piece, Failure> {
        match self {
            Self::OpenAi(stream) => stream.event(event),
            Self::Anthropic(stream) => stream.event(event),
        }
    }

    pub(crate) fn complete(&self) -> bool {
        match self {
            Self::OpenAi(stream) => stream.complete(),
            Self::Anthropic(stream) => stream.complete(),
        }
    }

    /// Returns the size of the response so far, in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::OpenAi(stream) => stream.size(),
            Self::Anthropic(stream) => stream.size(),
        }
    }

    /// Returns the reply to a request whose response is complete.
    pub(crate) fn reply(self, request: &TurnRequest) -> TurnReply {
        match self {
            Self::OpenAi(stream) => stream.reply(request),
            Self::Anthropic(stream) => stream.reply(request),
        }
    }
}
