//! Reads a provider's response as a reply. Pure.

use std::ops::ControlFlow;

use redial_proto::{
    ErrorClass, Failure, TurnReply, TurnRequest,
    limits::{self, MAX_REPLY},
};
use serde_json::Value;

use crate::{
    api::{Api, Stream},
    failure, json, limit,
    piece::Piece,
    sse::Events,
};

/// Deepest response that is read. serde_json stops at 128 levels, and a body adds a few levels around an answer.
const MAX_DEPTH: usize = 120;
/// At most this many bytes of a stream are read; each event adds some hundred bytes to a piece of a few letters.
const MAX_STREAM: usize = 64 * MAX_REPLY;

/// Reads a complete response: a JSON body, or a stream of server-sent events if `streamed`.
pub fn read(api: Api, request: &TurnRequest, body: &[u8], streamed: bool) -> Result<TurnReply, Failure> {
    if streamed { events(api, request, body) } else { whole(api, request, body) }
}

/// Reads a response that is not streamed.
pub(crate) fn whole(api: Api, request: &TurnRequest, body: &[u8]) -> Result<TurnReply, Failure> {
    match json::read(body) {
        Ok(body) => of_body(api, request, &body),
        Err(_) if limits::json_depth(&String::from_utf8_lossy(body)) > MAX_DEPTH => Ok(too_deep()),
        Err(_) => Err(failure::not_json(body)),
    }
}

/// Reads a complete stream of events.
fn events(api: Api, request: &TurnRequest, body: &[u8]) -> Result<TurnReply, Failure> {
    let mut streamed = StreamedResponse::new(api);
    // The body is complete, so it does not matter whether more bytes are needed.
    let _ = streamed.take(body, &mut |_| ())?;
    streamed.end(request, Some(failure::incomplete()))
}

pub(crate) struct StreamedResponse {
    events: Events,
    stream: Stream,
    /// Bytes received so far.
    received: usize,
    /// The text so far, to quote its start if it becomes too long.
    text: String,
    /// The reply to a response that exceeds a limit.
    over_limit: Option<TurnReply>,
}

impl StreamedResponse {
    pub(crate) fn new(api: Api) -> Self {
        let (events, stream) = (Events::default(), api.stream());
        Self { events, stream, received: 0, text: String::new(), over_limit: None }
    }

    /// Takes the next bytes of the stream, split anywhere; breaks once no more are needed.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        watch: &mut (dyn FnMut(Piece) + Send),
    ) -> Result<ControlFlow<()>, Failure> {
        self.received += bytes.len();
        let events = self.events.feed(bytes);
        for data in events.into_iter().filter(|data| !data.trim().is_empty()) {
            if data.trim() == "[DONE]" {
                return Ok(ControlFlow::Break(()));
            }
            let Ok(event) = json::read_event(&data) else {
                if limits::json_depth(&data) > MAX_DEPTH {
                    self.over_limit = Some(too_deep());
                    return Ok(ControlFlow::Break(()));
                }
                return Err(failure::not_json(data.as_bytes()));
            };
            let piece = self.stream.event(&event)?;
            self.text.push_str(&piece.text);
            if piece != Piece::default() {
                watch(piece);
            }
        }
        if self.received > MAX_STREAM || self.stream.size() > MAX_REPLY || self.events.pending() > MAX_REPLY * 2 {
            self.over_limit = Some(limit::too_long(&self.text, self.stream.size()));
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the reply at the end of the stream. `why` is the failure if the stream ended without saying that it is
    /// complete.
    pub(crate) fn end(self, request: &TurnRequest, why: Option<Failure>) -> Result<TurnReply, Failure> {
        if let Some(reply) = self.over_limit {
            return Ok(reply);
        }
        let empty = self.stream.size() == 0;
        match why.or_else(|| empty.then(failure::incomplete)).filter(|_| !self.stream.complete()) {
            Some(failure) => Err(failure),
            None => Ok(self.stream.reply(request)),
        }
    }
}

fn of_body(api: Api, request: &TurnRequest, body: &Value) -> Result<TurnReply, Failure> {
    if let Some(error) = body.get("error").filter(|error| !error.is_null() && body.get("choices").is_none()) {
        return Err(failure::reported(error));
    }
    api.reply(request, body).ok_or_else(|| {
        Failure::new(ErrorClass::Unavailable, "the provider's response is JSON but not a model's response")
    })
}

fn too_deep() -> TurnReply {
    let problem =
        format!("The answer is nested deeper than {} levels. Answer again with less nesting.", limits::MAX_DEPTH);
    TurnReply { problem: Some(problem), ..TurnReply::default() }
}
