//! Assembles the chunks of a streamed response into the body of one that is not streamed.

use redial_proto::Failure;
use serde_json::{Map, Value, json};

use crate::{failure, piece::Piece};

/// The parts of the response so far.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    text: String,
    thought: String,
    refusal: String,
    details: Vec<Value>,
    calls: Vec<Call>,
    finish: Option<String>,
    usage: Value,
    model: String,
    size: usize,
}

/// A call that is being written.
#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extra: Value,
}

impl Stream {
    pub(crate) fn event(&mut self, chunk: &Value) -> Result<Piece, Failure> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(failure::reported(error));
        }
        if let Some(model) = chunk["model"].as_str().filter(|_| self.model.is_empty()) {
            model.clone_into(&mut self.model);
        }
        if chunk["usage"].is_object() {
            self.usage = chunk["usage"].clone();
        }
        let choice = &chunk["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(reason.to_owned());
        }
        Ok(self.delta(&choice["delta"]))
    }

    pub(crate) const fn complete(&self) -> bool {
        self.finish.is_some()
    }

    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn body(self) -> Value {
        let mut message = Map::new();
        message.insert("content".to_owned(), self.text.into());
        if !self.thought.is_empty() {
            message.insert("reasoning_content".to_owned(), self.thought.into());
        }
        if !self.refusal.is_empty() {
            message.insert("refusal".to_owned(), self.refusal.into());
        }
        if !self.details.is_empty() {
            message.insert("reasoning_details".to_owned(), self.details.into());
        }
        message.insert("tool_calls".to_owned(), self.calls.into_iter().map(Call::body).collect());
        json!({
            "model": self.model,
            "choices": [{"message": message, "finish_reason": self.finish}],
            "usage": self.usage,
        })
    }

    fn delta(&mut self, delta: &Value) -> Piece {
        let text = |field: &str| delta[field].as_str().unwrap_or_default();
        let thought = if text("reasoning_content").is_empty() { text("reasoning") } else { text("reasoning_content") };
        let piece = Piece { text: text("content").to_owned(), thought: thought.to_owned() };
        self.text.push_str(&piece.text);
        self.thought.push_str(&piece.thought);
        self.refusal.push_str(text("refusal"));
        self.size += piece.text.len() + piece.thought.len() + text("refusal").len();
        if let Some(details) = delta["reasoning_details"].as_array() {
            self.size += details.iter().map(|detail| detail.to_string().len()).sum::<usize>();
            self.details.extend(details.iter().cloned());
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call);
        }
        piece
    }

    fn call(&mut self, delta: &Value) {
        let function = &delta["function"];
        let (index, id) = (delta["index"].as_u64(), delta["id"].as_str().unwrap_or_default());
        let name = function["name"].as_str().unwrap_or_default();
        let position = match self.calls.iter().rposition(|call| index.is_none() || call.index == index) {
            Some(position) if !self.calls[position].is_complete(id, name) => position,
            _ => {
                self.calls.push(Call { index, ..Call::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[position];
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        // Some servers repeat the name in each chunk, some send it in pieces; OpenAI sends it once.
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        let arguments = match &function["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        self.size += name.len() + id.len() + arguments.len();
        call.arguments.push_str(&arguments);
        if !delta["extra_content"].is_null() {
            call.extra = delta["extra_content"].clone();
        }
    }
}

impl Call {
    /// Whether a chunk with the same index belongs to another call. Ollama gives every call of a turn index 0, and old
    /// versions give no id: then a name after complete arguments begins the next call.
    fn is_complete(&self, id: &str, name: &str) -> bool {
        if !id.is_empty() {
            return !self.id.is_empty() && self.id != id;
        }
        !name.is_empty()
            && !self.name.is_empty()
            && self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok()
    }

    fn body(self) -> Value {
        let mut call = json!({"id": self.id, "type": "function",
            "function": {"name": self.name, "arguments": self.arguments}});
        if !self.extra.is_null() {
            call["extra_content"] = self.extra;
        }
        call
    }
}
