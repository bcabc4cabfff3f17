//! Puts the chunks of a streamed response together.

use redial_proto::{Failure, TurnReply, TurnRequest};
use serde_json::Value;

use super::{
    message::Message,
    reply::{self, Response, choice},
};
use crate::{failure, piece::Piece};

/// The response so far.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    message: Message,
    finish: Option<String>,
    usage: Value,
    model: String,
}

impl Stream {
    pub(crate) fn event(&mut self, chunk: &Value) -> Result<Piece, Failure> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(failure::reported(error));
        }
        if let Some(model) = chunk["model"].as_str().filter(|_| self.model.is_empty()) {
            model.clone_into(&mut self.model);
        }
        let choice = choice(chunk);
        for usage in [&choice["usage"], &chunk["usage"]] {
            if usage.is_object() {
                self.usage = usage.clone();
            }
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(reason.to_owned());
        }
        let mut piece = self.message.piece(&choice["delta"]);
        // Some servers send the whole message in one chunk, alone or after its pieces.
        if choice["message"].is_object() {
            let more = self.message.complete(&choice["message"]);
            piece.text.push_str(&more.text);
            piece.thought.push_str(&more.thought);
        }
        Ok(piece)
    }

    pub(crate) const fn complete(&self) -> bool {
        self.finish.is_some()
    }

    pub(crate) const fn size(&self) -> usize {
        self.message.size()
    }

    pub(crate) fn reply(self, request: &TurnRequest) -> TurnReply {
        let Self { message, finish, usage, model } = self;
        reply::of(request, &Response { message, finish: finish.as_deref(), usage: &usage, model: &model })
    }
}
