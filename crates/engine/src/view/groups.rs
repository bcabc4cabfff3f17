//! Stored messages → groups that stay together: what was asked and what was answered.

use std::collections::{BTreeSet, HashMap};

use redial_proto::{Message, MessageCall, Role};
use redial_records::ReadMessage;
use serde_json::{Map, Value};

/// Messages that stay or go together: one message, or an assistant message with the results of all its calls.
pub(super) type Group<'a> = Vec<Member<'a>>;

pub(super) struct Member<'a> {
    pub(super) read: &'a ReadMessage,
    /// The message, put right.
    pub(super) message: Message,
}

/// A conversation in order, put right.
pub(super) struct Groups<'a> {
    /// The last one that was written.
    pub(super) system: Option<Member<'a>>,
    pub(super) groups: Vec<Group<'a>>,
}

/// Tool messages by the call that they answer, with their positions; the first one counts.
type Answers<'a> = HashMap<&'a str, (usize, &'a ReadMessage)>;

/// Makes a conversation valid: removes calls that are pruned or not answered, and results that answer no call.
pub(super) fn collect<'a>(messages: &'a [ReadMessage], pruned: &BTreeSet<String>) -> Groups<'a> {
    let mut answers = Answers::new();
    for (position, read) in messages.iter().enumerate() {
        let message = &read.stored.message;
        if let (Role::Tool, Some(id)) = (message.role, &message.call_id)
            && !pruned.contains(id)
        {
            answers.entry(id).or_insert((position, read));
        }
    }
    let mut found = Groups { system: None, groups: Vec::new() };
    for (position, read) in messages.iter().enumerate() {
        match read.stored.message.role {
            Role::System => found.system = Some(Member::of(read)),
            Role::User => found.groups.push(vec![Member::of(read)]),
            Role::Assistant => found.groups.extend(exchange(position, read, &mut answers)),
            // Stands with its call.
            Role::Tool => {}
        }
    }
    found
}

/// Groups an assistant message with the results of its calls, in their order; none if it says nothing without them.
fn exchange<'a>(position: usize, read: &'a ReadMessage, answers: &mut Answers<'a>) -> Option<Group<'a>> {
    let assistant = &read.stored.message;
    let mut calls = Vec::new();
    let mut results = Vec::new();
    for call in &assistant.calls {
        let answer = answers.get(call.id.as_str()).filter(|(answered, _)| *answered > position);
        let Some((_, result)) = answer.copied() else { continue };
        answers.remove(call.id.as_str());
        calls.push(MessageCall { arguments: object(&call.arguments), ..call.clone() });
        results.push(Member::of(result));
    }
    if calls.is_empty() && assistant.content.trim().is_empty() {
        return None;
    }
    let mut group = vec![Member { read, message: Message { calls, ..assistant.clone() } }];
    group.append(&mut results);
    Some(group)
}

impl<'a> Member<'a> {
    fn of(read: &'a ReadMessage) -> Self {
        Self { read, message: read.stored.message.clone() }
    }
}

/// Returns the text of a JSON object: what was written if it is one, else an empty one.
fn object(arguments: &str) -> String {
    let is_object = serde_json::from_str::<Map<String, Value>>(arguments).is_ok();
    if is_object { arguments.to_owned() } else { "{}".to_owned() }
}
