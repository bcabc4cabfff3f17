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

/// Messages of a view.
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
#[serde(deny_unknown_fields)]
struct CutMessage {
    seq: u32,
    /// Bytes of the beginning that are left.
    head: u32,
    /// What is between them.
    text: String,
    /// Bytes of the end that are left.
    tail: u32,
}

/// The tools that a model was offered, as they are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnTools {
    /// SHA-256 of `tools`, in hexadecimal digits.
    pub hash: String,
    /// A JSON array of [`ToolOffer`].
    pub tools: String,
}

/// The arguments of a model turn on record.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnArguments {
    /// With references.
    Referring(Box<TurnOnRecord>),
    /// The whole request, as earlier versions wrote it; or what nobody can read.
    Whole(String),
}

impl TurnArguments {
    /// Reads the arguments of a call of the pool of models.
    pub fn read(arguments: String) -> Self {
        let refers = arguments.starts_with(START);
        match serde_json::from_str(&arguments) {
            Ok(turn) if refers => Self::Referring(turn),
            _ => Self::Whole(arguments),
        }
    }
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
    /// Keeps a request, whose messages come from a conversation; each with its sequence number there, 0 if it is none of them. `text` is
    /// the request as JSON.
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

    /// As JSON.
    pub fn to_json(&self) -> String {
        // Maps have text keys only, so this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Bytes of the whole request.
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Bytes of the whole request whose record this JSON is; `None` if it is another JSON.
    pub fn bytes_of(json: &str) -> Option<u32> {
        let rest = json.strip_prefix(START)?;
        rest[..rest.find(',')?].parse().ok()
    }

    /// The messages that are needed to put it together: ranges of sequence numbers, both ends included.
    pub fn ranges(&self) -> impl Iterator<Item = (u32, u32)> {
        self.view.iter().filter_map(|seen| match seen {
            Seen::Messages(from, until) => Some((*from, *until)),
            Seen::Cut(CutMessage { seq, .. }) => Some((*seq, *seq)),
            Seen::Other(_) => None,
        })
    }

    /// The hash of the tools that were offered.
    pub fn tools(&self) -> Option<&str> {
        self.tools.as_deref()
    }

    /// The request without its messages: what was offered, and what was cut. `tools` are those of [`TurnOnRecord::tools`].
    pub fn without_messages(&self, tools: Option<&str>) -> Result<String, Missing> {
        let request = TurnRequest { tools: self.offers(tools)?, ..self.request.clone() };
        serde_json::to_string(&request).map_err(|error| Missing(error.to_string()))
    }

    /// Puts the request together.
    pub fn expand(&self, messages: &HashMap<u32, Message>, tools: Option<&str>) -> Result<Expanded, Missing> {
        let find = |seq: u32| messages.get(&seq).ok_or_else(|| Missing(format!("message {seq}")));
        let mut view = Vec::new();
        for seen in &self.view {
            match seen {
                Seen::Messages(from, until) => {
                    for seq in *from..=*until {
                        view.push(find(seq)?.clone());
                    }
                }
                Seen::Cut(cut) => {
                    let whole = find(cut.seq)?;
                    let content =
                        cut.of(&whole.content).ok_or_else(|| Missing(format!("a part of message {}", cut.seq)))?;
                    view.push(Message { content, ..whole.clone() });
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
    fn of(&self, whole: &str) -> Option<String> {
        let (head, tail) = (self.head as usize, whole.len().checked_sub(self.tail as usize)?);
        Some([whole.get(..head)?, &self.text, whole.get(tail.max(head)..)?].concat())
    }
}

/// A message of a view as what is on record of it; `None` if it differs in more than its content, or if nothing is gained.
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

/// Bytes of the characters that two texts have in common from where they begin.
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
mod tests {
    use chrono::DateTime;
    use redial_proto::{Language, Role, StoredMessage, TaskId, Trimmed};

    use super::*;
    use crate::Cut;

    fn stored(seq: u32, role: Role, content: &str) -> StoredMessage {
        let at = DateTime::UNIX_EPOCH;
        StoredMessage { seq, task: TaskId::generate(), at, message: Message::text(role, content) }
    }

    fn request(messages: Vec<Message>) -> TurnRequest {
        let tools = vec![ToolOffer {
            name: "echo".to_owned(),
            description: String::new(),
            parameters: serde_json::json!({"type": "object"}),
            version: "1".to_owned(),
            polling: false,
            sequential: false,
            repairs: true,
        }];
        TurnRequest {
            task: TaskId::generate(),
            turn: 3,
            messages,
            tools,
            language: Language::Zh,
            max_tokens: Some(7),
            temperature: None,
            trimmed: Trimmed { tokens: 9, shortened: 1, left_out: 2 },
        }
    }

    #[test]
    fn what_is_put_together_is_what_was_sent() {
        let long = format!("{}好{}", "a".repeat(5_000), "z".repeat(5_000));
        let whole: Vec<StoredMessage> = vec![
            stored(1, Role::System, "system"),
            stored(2, Role::User, "question"),
            stored(3, Role::Assistant, "answer"),
            stored(4, Role::User, &long),
            stored(5, Role::User, "nul \0"),
            stored(6, Role::User, &long),
        ];
        let mut read = ReadConversation::whole(whole.clone());
        // Of the last one only the beginning and the end were read.
        let last = &mut read.messages[5];
        last.stored.message.content = "a".repeat(400);
        last.cut = Some(Cut { bytes: long.len(), tail: "z".repeat(300) });
        let with =
            |seq: usize, content: &str| Message { content: content.to_owned(), ..whole[seq - 1].message.clone() };
        let cut = with(4, &format!("{} … {}", &long[..900], &long[long.len() - 200..]));
        let part = with(6, &format!("{} cut {}", &long[..400], &long[long.len() - 300..]));
        let changed = Message { by_redial: true, ..with(3, "answer") };
        let note = Message::text(Role::User, "a note");
        let messages = vec![
            with(1, "system"),
            note,
            with(2, "question"),
            with(3, "answer"),
            changed,
            cut,
            with(4, &long[..100]),
            with(5, "nul \0"),
            part,
        ];
        let request = request(messages);
        let text = serde_json::to_string(&request).unwrap();
        let seqs = [1, 0, 2, 3, 3, 4, 4, 5, 6];
        let (turn, tools) = TurnOnRecord::new(request.clone(), &seqs, &text, &read);
        let tools = tools.unwrap();
        let json = turn.to_json();
        assert!(json.len() < 1_200, "{json}");
        assert_eq!(TurnOnRecord::bytes_of(&json), Some(turn.bytes()));
        assert_eq!(TurnOnRecord::bytes_of(&text), None);
        let TurnArguments::Referring(again) = TurnArguments::read(json) else { panic!("it refers") };
        assert_eq!(*again, turn);
        assert_eq!(TurnArguments::read(text.clone()), TurnArguments::Whole(text.clone()));
        assert_eq!(again.ranges().collect::<Vec<_>>(), [(1, 1), (2, 3), (4, 4), (4, 4), (6, 6)]);
        let mut known: HashMap<u32, Message> = whole.into_iter().map(|one| (one.seq, one.message)).collect();
        let expanded = again.expand(&known, Some(&tools.tools)).unwrap();
        assert_eq!(expanded, Expanded { request: text.clone(), is_exact: true });
        let without: TurnRequest = serde_json::from_str(&again.without_messages(Some(&tools.tools)).unwrap()).unwrap();
        assert_eq!(without, TurnRequest { messages: Vec::new(), ..request });
        known.get_mut(&2).unwrap().content.push('!');
        assert!(!again.expand(&known, Some(&tools.tools)).unwrap().is_exact, "somebody changed it");
        known.remove(&2);
        assert_eq!(again.expand(&known, Some(&tools.tools)), Err(Missing("message 2".to_owned())));
        assert!(again.expand(&known, None).is_err());
    }

    #[test]
    fn a_text_that_repeats_itself_is_cut_in_the_right_place() {
        let whole = vec![stored(1, Role::Tool, &"ab".repeat(100))];
        let read = ReadConversation::whole(whole.clone());
        for content in ["ab", "abab…abab", "", "ba", &"ab".repeat(99), &"ab".repeat(101)] {
            let request = request(vec![Message { content: (*content).to_owned(), ..whole[0].message.clone() }]);
            let text = serde_json::to_string(&request).unwrap();
            let (turn, tools) = TurnOnRecord::new(request, &[1], &text, &read);
            let known = HashMap::from([(1, whole[0].message.clone())]);
            assert_eq!(turn.expand(&known, tools.as_ref().map(|tools| tools.tools.as_str())).unwrap().request, text);
        }
    }
}
