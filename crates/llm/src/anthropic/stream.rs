//! Assembles the events of a streamed response into the body of one that is not streamed.

use redial_proto::Failure;
use serde_json::{Map, Value, json};

use crate::{failure, piece::Piece};

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

/// A block that is being written.
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
                self.count(&event["message"]["usage"]);
            }
            "content_block_start" => self.begin(event),
            "content_block_delta" => return Ok(self.delta(event)),
            "message_delta" => {
                self.stop_reason = event["delta"]["stop_reason"].clone();
                self.count(&event["usage"]);
            }
            "message_stop" => self.stopped = true,
            _ => {}
        }
        Ok(Piece::default())
    }

    pub(crate) const fn complete(&self) -> bool {
        self.stopped
    }

    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn body(self) -> Value {
        let content: Vec<Value> = self.blocks.into_iter().map(Block::body).collect();
        json!({"model": self.model, "content": content, "stop_reason": self.stop_reason, "usage": self.usage})
    }

    /// Later counts replace earlier ones.
    fn count(&mut self, usage: &Value) {
        let counts = usage.as_object().into_iter().flatten().filter(|(_, count)| count.is_u64());
        self.usage.extend(counts.map(|(field, count)| (field.clone(), count.clone())));
    }

    fn begin(&mut self, event: &Value) {
        let start = event["content_block"].clone();
        self.size += start.to_string().len();
        let index = event["index"].as_u64().unwrap_or_default();
        self.blocks.push(Block { index, start, text: String::new(), more: String::new() });
    }

    fn delta(&mut self, event: &Value) -> Piece {
        let index = event["index"].as_u64().unwrap_or_default();
        let Some(block) = self.blocks.iter_mut().rev().find(|block| block.index == index) else {
            return Piece::default();
        };
        let delta = &event["delta"];
        let text = |field: &str| delta[field].as_str().unwrap_or_default().to_owned();
        let (mut piece, mut more) = (Piece::default(), String::new());
        match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => piece.text = text("text"),
            "thinking_delta" => piece.thought = text("thinking"),
            "input_json_delta" => more = text("partial_json"),
            "signature_delta" => more = text("signature"),
            _ => {}
        }
        self.size += piece.text.len() + piece.thought.len() + more.len();
        block.text.push_str(&piece.text);
        block.text.push_str(&piece.thought);
        block.more.push_str(&more);
        piece
    }
}

impl Block {
    /// The block as in a response that is not streamed, except that arguments stay text, because they may be cut off and
    /// then are not JSON.
    fn body(self) -> Value {
        let mut block = self.start;
        let (text_field, more_field) = match block["type"].as_str().unwrap_or_default() {
            "text" => ("text", None),
            "thinking" => ("thinking", Some("signature")),
            "tool_use" => ("", Some("input")),
            _ => return block,
        };
        if !text_field.is_empty() {
            block[text_field] = format!("{}{}", block[text_field].as_str().unwrap_or_default(), self.text).into();
        }
        if let Some(field) = more_field.filter(|_| !self.more.is_empty()) {
            block[field] = self.more.into();
        }
        block
    }
}
