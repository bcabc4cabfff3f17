//! Assembles the events of a streamed response into the blocks of one that is not streamed.

use redial_proto::{Failure, TurnReply, TurnRequest};
use serde_json::{Map, Value, json};

use super::reply;
use crate::{failure, json::halves, piece::Piece};

/// The parts of the response so far.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    model: Value,
    usage: Map<String, Value>,
    stop_reason: Value,
    blocks: Vec<Block>,
    stopped: bool,
    size: usize,
}

#[derive(Debug)]
struct Block {
    index: u64,
    /// The block as its first event had it.
    start: Value,
    text: String,
    /// Arguments of a call, or the signature of a thought.
    more: String,
}

impl Stream {
    pub(crate) fn event(&mut self, event: &Value) -> Result<Piece, Failure> {
        match event["type"].as_str().unwrap_or_default() {
            "error" => return Err(failure::reported(&event["error"])),
            "message_start" => {
                self.model = event["message"]["model"].clone();
                // The tokens that were written so far are no count of the answer.
                let usage = event["message"]["usage"].as_object().cloned().unwrap_or_default();
                self.count(usage.into_iter().filter(|(field, _)| field != "output_tokens"));
            }
            "content_block_start" => self.begin(event),
            "content_block_delta" => return Ok(self.delta(event)),
            "message_delta" => {
                if event["delta"]["stop_reason"].is_string() {
                    self.stop_reason = event["delta"]["stop_reason"].clone();
                }
                self.count(event["usage"].as_object().cloned().unwrap_or_default());
            }
            "message_stop" => self.stopped = true,
            _ => {}
        }
        Ok(Piece::default())
    }

    pub(crate) fn complete(&self) -> bool {
        self.stopped || self.stop_reason.is_string()
    }

    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn reply(self, request: &TurnRequest) -> TurnReply {
        let blocks: Vec<Value> = self.blocks.into_iter().map(Block::body).collect();
        let body = json!({"model": self.model, "stop_reason": self.stop_reason, "usage": self.usage});
        reply::of(request, &blocks, &body)
    }

    /// Takes counts; later ones replace earlier ones.
    fn count(&mut self, usage: impl IntoIterator<Item = (String, Value)>) {
        self.usage.extend(usage.into_iter().filter(|(_, count)| count.is_u64()));
    }

    fn begin(&mut self, event: &Value) {
        let start = event["content_block"].clone();
        self.size += start.to_string().len();
        let index = event["index"].as_u64().unwrap_or_default();
        self.blocks.push(Block { index, start, text: String::new(), more: String::new() });
    }

    fn delta(&mut self, event: &Value) -> Piece {
        let delta = &event["delta"];
        let text = |field: &str| delta[field].as_str().unwrap_or_default().to_owned();
        let piece = Piece { text: text("text"), thought: text("thinking") };
        let more = text("partial_json") + &text("signature");
        if piece == Piece::default() && more.is_empty() {
            return piece;
        }
        self.size += piece.text.len() + piece.thought.len() + more.len();
        let block = self.block(event);
        block.text.push_str(&piece.text);
        block.text.push_str(&piece.thought);
        block.more.push_str(&more);
        Piece { text: halves::join(piece.text), thought: halves::join(piece.thought) }
    }

    /// Returns the block to which a delta belongs. If the server did not begin one of this kind, it begins here, so
    /// that nothing is lost.
    fn block(&mut self, event: &Value) -> &mut Block {
        let index = event["index"].as_u64().unwrap_or_default();
        let delta = &event["delta"];
        let kind = match (delta.get("partial_json"), delta.get("thinking").or(delta.get("signature"))) {
            (Some(_), _) => "tool_use",
            (None, Some(_)) => "thinking",
            (None, None) => "text",
        };
        let fits = |block: &Block| block.index == index && block.start["type"] == kind;
        let position = self.blocks.iter().rposition(fits).unwrap_or_else(|| {
            self.begin(&json!({"index": index, "content_block": {"type": kind}}));
            self.blocks.len() - 1
        });
        &mut self.blocks[position]
    }
}

impl Block {
    /// Returns the block as in a response that is not streamed, except that arguments stay text, because they may be
    /// cut off and then are not JSON.
    fn body(self) -> Value {
        let mut block = self.start;
        let (text_field, more_field) = match block["type"].as_str().unwrap_or_default() {
            "text" => ("text", None),
            "thinking" => ("thinking", Some("signature")),
            "tool_use" => ("", Some("input")),
            _ => return halves::join_all(block),
        };
        if !text_field.is_empty() {
            let text = format!("{}{}", block[text_field].as_str().unwrap_or_default(), self.text);
            block[text_field] = text.into();
        }
        if let Some(field) = more_field.filter(|_| !self.more.is_empty()) {
            block[field] = self.more.into();
        }
        halves::join_all(block)
    }
}
