//! The calls of a message, whole or in pieces.

use redial_proto::ReplyCall;
use serde_json::{Map, Value};

use crate::{json::halves, offers::Offers};

#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: Name,
    arguments: String,
    extra: Value,
}

/// A name that may come in pieces.
#[derive(Debug, Default)]
struct Name {
    first: String,
    last: String,
    joined: String,
    /// Every piece is the same.
    repeated: bool,
}

/// A call, or a piece of one, as a server sent it.
struct Sent<'a> {
    name: &'a str,
    arguments: String,
}

impl Calls {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a whole call; returns its size in bytes.
    pub(super) fn whole(&mut self, call: &Value) -> usize {
        self.0.push(Call { index: call["index"].as_u64(), ..Call::default() });
        self.extend(self.0.len() - 1, call)
    }

    /// Adds a piece; returns its size in bytes.
    pub(super) fn piece(&mut self, piece: &Value) -> usize {
        let (index, id) = (piece["index"].as_u64(), piece["id"].as_str().unwrap_or_default());
        let position = self.position(index, id).filter(|position| !self.0[*position].is_complete(id, sent(piece).name));
        let position = position.unwrap_or_else(|| {
            self.0.push(Call { index, ..Call::default() });
            self.0.len() - 1
        });
        self.extend(position, piece)
    }

    /// Returns the calls, without a check: their names and arguments are checked later.
    pub(super) fn replies(&self, offers: &Offers) -> Vec<ReplyCall> {
        let reply = |call: &Call| ReplyCall {
            name: offers.own(&call.name.read(offers)),
            arguments: halves::join(call.arguments.clone()),
        };
        self.0.iter().map(reply).collect()
    }

    /// Returns data of the provider for each call; empty if it sent none.
    pub(super) fn extras(&self) -> Vec<Value> {
        if self.0.iter().all(|call| call.extra.is_null()) {
            return Vec::new();
        }
        self.0.iter().map(|call| call.extra.clone()).collect()
    }

    /// Finds the call to which a piece belongs.
    fn position(&self, index: Option<u64>, id: &str) -> Option<usize> {
        let fits = |call: &Call| index.is_none() || call.index == index;
        let same = self.0.iter().rposition(|call| !id.is_empty() && call.id == id && fits(call));
        same.or_else(|| self.0.iter().rposition(fits))
    }

    fn extend(&mut self, position: usize, piece: &Value) -> usize {
        let sent = sent(piece);
        let id = piece["id"].as_str().unwrap_or_default();
        let call = &mut self.0[position];
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        call.name.add(sent.name);
        call.arguments.push_str(&sent.arguments);
        if !piece["extra_content"].is_null() {
            call.extra = halves::join_all(piece["extra_content"].clone());
        }
        sent.name.len() + id.len() + sent.arguments.len()
    }
}

impl Call {
    /// True if a piece with the same index belongs to another call. Ollama gives every call of a turn index 0, and old
    /// versions give no id: then a name after complete arguments begins the next call.
    fn is_complete(&self, id: &str, name: &str) -> bool {
        if !id.is_empty() && !self.id.is_empty() {
            return self.id != id;
        }
        !name.is_empty()
            && !self.name.joined.is_empty()
            && self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok()
    }
}

impl Name {
    fn add(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.repeated = self.joined.is_empty() || (self.repeated && piece == self.first);
        if self.joined.is_empty() {
            piece.clone_into(&mut self.first);
        }
        piece.clone_into(&mut self.last);
        self.joined.push_str(piece);
    }

    /// Reads the name. OpenAI sends it once. Some servers send it in pieces, some repeat it, some send what they have
    /// of it each time.
    fn read(&self, offers: &Offers) -> String {
        let known = |name: &str| offers.has(name);
        let name = if known(&self.joined) {
            &self.joined
        } else if self.repeated || known(&self.first) && self.first == self.last {
            &self.first
        } else if known(&self.last) && self.last.starts_with(&self.first) {
            &self.last
        } else {
            &self.joined
        };
        halves::join(name.clone())
    }
}

/// Reads the name and the arguments of a call: in `function`, or, as some servers send it, in the call itself.
fn sent(call: &Value) -> Sent<'_> {
    let function = Some(&call["function"]).filter(|function| function.is_object()).unwrap_or(call);
    let name = function["name"].as_str().or_else(|| call["function"].as_str()).unwrap_or_default();
    let fields = ["arguments", "parameters", "input"].iter().map(|field| &function[*field]);
    let arguments = match fields.into_iter().find(|value| !value.is_null()) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    Sent { name, arguments }
}
