//! What a model was asked, as it is kept: what is on record elsewhere is referred to, and not copied for each turn.
//!
//! A view of a conversation consists of its messages, of messages whose text was cut, and of few others. The first are ranges of sequence
//! numbers; of the second it is kept how much of the beginning and of the end was left, and what was put between. The tools that were
//! offered are kept once for each task. A hash says whether what is put together again is what was sent, to the letter.

use std::{collections::HashMap, fmt::Write as _};

use redial_proto::{Message, ToolOffer, TurnRequest};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{ReadConversation, ReadMessage};

/// A request for a model turn with references: the arguments of its call on record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnOnRecord {
    /// Bytes of the whole request. First, so that [`TurnOnRecord::bytes_of`] needs nothing else.
    bytes: u32,
    /// SHA-256 of the whole request, in hexadecimal digits.
    sha256: String,
    /// The messages that the model got, in order.
    view: Vec<Seen>,
    /// [`TurnTools::hash`]; `None` if no tool was offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<String>,
    /// The rest: without messages and tools.
    request: TurnRequest,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Seen {
    /// Messages of the conversation from one sequence number to another, as they are.
    Messages(u32, u32),
    /// A message of the conversation whose content was cut.
    Cut(CutMessage),
    /// Another message, or one that was changed otherwise.
    Other(Box<Message>),
}

/// A message of the conversation whose content was cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CutMessage {
    seq: u32,
    /// Bytes of the beginning that are left.
    head: u32,
    /// What is between them.
    text: String,
    /// Bytes of the end that are left.
    tail: u32,
}

/// Messages that are needed to put a request together: from one sequence number to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Tells the parts of a request apart: two may need the same message.
    pub part: u32,
    pub first: u32,
    pub last: u32,
    /// Set if no more than the ends of the content are needed.
    pub ends: Option<Ends>,
}

/// What is needed of a content that was cut. More of it does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Bytes of the beginning.
    pub head: u32,
    /// Bytes of the end.
    pub tail: u32,
}

/// The tools that a model was offered, as they are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnTools {
    /// SHA-256 of `tools`, in hexadecimal digits.
    pub hash: String,
    /// A JSON array of [`ToolOffer`].
    pub tools: String,
}

/// How the JSON of a [`TurnOnRecord`] begins; that of a [`TurnRequest`] does not.
const START: &str = "{\"bytes\":";

/// A request that was put together again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expanded {
    /// The request, as JSON.
    pub request: String,
    /// It is what was sent, to the letter.
    pub is_exact: bool,
}

impl TurnOnRecord {
    /// Keeps a request, whose messages come from a conversation; each with its sequence number there, 0 if it is none
    /// of them. `text` is the request as JSON.
    pub fn new(
        request: TurnRequest,
        seqs: &[u32],
        text: &str,
        conversation: &ReadConversation,
    ) -> (Self, Option<TurnTools>) {
        let known: HashMap<u32, &ReadMessage> =
            conversation.messages.iter().map(|read| (read.stored.seq, read)).collect();
        let TurnRequest { messages, tools, .. } = request;
        let mut view = Vec::new();
        for (seq, message) in seqs.iter().zip(messages) {
            let seen = known.get(seq).and_then(|read| refer(read, &message));
            match (seen, view.last_mut()) {
                (Some(Seen::Messages(seq, _)), Some(Seen::Messages(_, last))) if *last + 1 == seq => *last = seq,
                (seen, _) => view.push(seen.unwrap_or_else(|| Seen::Other(Box::new(message)))),
            }
        }
        let tools = (!tools.is_empty()).then(|| TurnTools::of(&tools));
        let turn = Self {
            bytes: u32::try_from(text.len()).unwrap_or(u32::MAX),
            sha256: sha256(text),
            view,
            tools: tools.as_ref().map(|tools| tools.hash.clone()),
            request: TurnRequest { messages: Vec::new(), tools: Vec::new(), ..request },
        };
        (turn, tools)
    }

    /// Reads what [`TurnOnRecord::to_json`] wrote; the error says why it cannot be read.
    pub fn read(json: &str) -> Result<Box<Self>, Missing> {
        serde_json::from_str(json).map_err(|error| Missing(error.to_string()))
    }

    pub fn to_json(&self) -> String {
        // Maps have text keys only, so this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Counts the bytes of the whole request whose record this JSON is; `None` if it is another JSON.
    pub fn bytes_of(json: &str) -> Option<u32> {
        let rest = json.strip_prefix(START)?;
        rest[..rest.find(',')?].parse().ok()
    }

    /// Returns the messages that are needed to put it together.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        (0..).zip(&self.view).filter_map(|(part, seen)| match seen {
            Seen::Messages(first, last) => Some(Part { part, first: *first, last: *last, ends: None }),
            Seen::Cut(cut) => {
                let ends = Ends { head: cut.head, tail: cut.tail };
                Some(Part { part, first: cut.seq, last: cut.seq, ends: Some(ends) })
            }
            Seen::Other(_) => None,
        })
    }

    pub fn tools(&self) -> Option<&str> {
        self.tools.as_deref()
    }

    /// Returns the request without its messages: what was offered, and what was cut. `tools` are those of
    /// [`TurnOnRecord::tools`].
    pub fn without_messages(&self, tools: Option<&str>) -> Result<String, Missing> {
        let request = TurnRequest { tools: self.offers(tools)?, ..self.request.clone() };
        serde_json::to_string(&request).map_err(|error| Missing(error.to_string()))
    }

    /// Puts the request together. `messages` are those of [`TurnOnRecord::parts`], by part and sequence number.
    pub fn expand(
        &self,
        mut messages: HashMap<(u32, u32), ReadMessage>,
        tools: Option<&str>,
    ) -> Result<Expanded, Missing> {
        let mut find = |part, seq| messages.remove(&(part, seq)).ok_or_else(|| Missing(format!("message {seq}")));
        let mut view = Vec::new();
        for (part, seen) in (0..).zip(&self.view) {
            match seen {
                Seen::Messages(from, until) => {
                    for seq in *from..=*until {
                        view.push(find(part, seq)?.stored.message);
                    }
                }
                Seen::Cut(cut) => {
                    let read = find(part, cut.seq)?;
                    let content = cut.of(&read).ok_or_else(|| Missing(format!("a part of message {}", cut.seq)))?;
                    view.push(Message { content, ..read.stored.message });
                }
                Seen::Other(message) => view.push((**message).clone()),
            }
        }
        let request = TurnRequest { messages: view, tools: self.offers(tools)?, ..self.request.clone() };
        let request = serde_json::to_string(&request).map_err(|error| Missing(error.to_string()))?;
        let is_exact = sha256(&request) == self.sha256;
        Ok(Expanded { request, is_exact })
    }

    fn offers(&self, tools: Option<&str>) -> Result<Vec<ToolOffer>, Missing> {
        let Some(hash) = &self.tools else { return Ok(Vec::new()) };
        let tools = tools.ok_or_else(|| Missing(format!("tools {hash}")))?;
        serde_json::from_str(tools).map_err(|error| Missing(error.to_string()))
    }
}

/// What is not on record any more, or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub String);

impl TurnTools {
    fn of(offers: &[ToolOffer]) -> Self {
        // Maps have text keys only, so this cannot fail.
        let tools = serde_json::to_string(offers).unwrap_or_default();
        Self { hash: sha256(&tools), tools }
    }
}

impl CutMessage {
    /// Returns the content as the model got it; `None` if the whole is shorter than what was left of it.
    fn of(&self, read: &ReadMessage) -> Option<String> {
        let (head, tail) = (self.head as usize, self.tail as usize);
        let begin = &read.stored.message.content;
        let end = read.cut.as_ref().map_or(begin, |cut| &cut.tail);
        // Where they overlap, the end begins behind the beginning.
        let overlap = head.saturating_sub(read.content_bytes().checked_sub(tail)?);
        let from = end.len().checked_sub(tail)? + overlap;
        Some([begin.get(..head)?, &self.text, end.get(from..)?].concat())
    }
}

/// Refers to what is on record of a message of a view; `None` if it differs in more than its content, or if nothing is
/// gained.
fn refer(read: &ReadMessage, message: &Message) -> Option<Seen> {
    let (stored, seq) = (&read.stored.message, read.stored.seq);
    // The tables hold no U+0000: what is read again may be another text.
    if !is_same_but_content(stored, message) || message.content.contains('\0') {
        return None;
    }
    if read.cut.is_none() && stored.content == message.content {
        return Some(Seen::Messages(seq, seq));
    }
    let end = read.cut.as_ref().map_or(stored.content.as_str(), |cut| &cut.tail);
    let head = common(stored.content.chars().zip(message.content.chars()));
    let rest = &message.content[head..];
    // The beginning and the end of a text that is known as a whole must not overlap.
    let end = if read.cut.is_none() { end.get(head..).unwrap_or_default() } else { end };
    let tail = common(end.chars().rev().zip(rest.chars().rev()));
    let text = rest[..rest.len() - tail].to_owned();
    let size = |bytes: usize| u32::try_from(bytes).ok();
    Some(Seen::Cut(CutMessage { seq, head: size(head)?, text, tail: size(tail)? }))
}

/// Counts the bytes of the characters that two texts have in common from where they begin.
fn common(pairs: impl Iterator<Item = (char, char)>) -> usize {
    pairs.take_while(|(one, other)| one == other).map(|(one, _)| one.len_utf8()).sum()
}

fn is_same_but_content(one: &Message, other: &Message) -> bool {
    let Message { role, content: _, thought, calls, call_id, tool, class, by_redial, provider } = one;
    *role == other.role
        && *thought == other.thought
        && *calls == other.calls
        && *call_id == other.call_id
        && *tool == other.tool
        && *class == other.class
        && *by_redial == other.by_redial
        && *provider == other.provider
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests;
