//! Stored messages → groups that stay together: what was asked and what was answered.

use std::collections::{BTreeSet, HashMap};

use redial_proto::{Message, MessageCall, Role, StoredMessage};
use serde_json::{Map, Value};

/// Messages that stay or go together: one message, or an assistant message with the results of all its calls.
pub(super) type Group = Vec<Message>;

/// A conversation in order, put right.
pub(super) struct Groups {
    /// The last one that was written.
    pub(super) system: Option<Message>,
    pub(super) groups: Vec<Group>,
}

/// Tool messages by the call that they answer, with their positions; the first one counts.
type Answers<'a> = HashMap<&'a str, (usize, &'a Message)>;

/// Makes a conversation valid: removes calls that are pruned or not answered, and results that answer no call.
pub(super) fn collect(messages: &[StoredMessage], pruned: &BTreeSet<String>) -> Groups {
    let mut answers = Answers::new();
    for (position, message) in messages.iter().map(|stored| &stored.message).enumerate() {
        if let (Role::Tool, Some(id)) = (message.role, &message.call_id)
            && !pruned.contains(id)
        {
            answers.entry(id).or_insert((position, message));
        }
    }
    let mut found = Groups { system: None, groups: Vec::new() };
    for (position, message) in messages.iter().map(|stored| &stored.message).enumerate() {
        match message.role {
            Role::System => found.system = Some(message.clone()),
            Role::User => found.groups.push(vec![message.clone()]),
            Role::Assistant => found.groups.extend(exchange(position, message, &mut answers)),
            // Stands with its call.
            Role::Tool => {}
        }
    }
    found
}

/// An assistant message with the results of its calls, in their order; none if it says nothing without them.
fn exchange(position: usize, assistant: &Message, answers: &mut Answers<'_>) -> Option<Group> {
    let mut calls = Vec::new();
    let mut results = Vec::new();
    for call in &assistant.calls {
        let answer = answers.get(call.id.as_str()).filter(|(answered, _)| *answered > position);
        let Some((_, result)) = answer.copied() else { continue };
        answers.remove(call.id.as_str());
        calls.push(MessageCall { arguments: object(&call.arguments), ..call.clone() });
        results.push(result.clone());
    }
    if calls.is_empty() && assistant.content.trim().is_empty() {
        return None;
    }
    let mut group = vec![Message { calls, ..assistant.clone() }];
    group.append(&mut results);
    Some(group)
}

/// The text of a JSON object: what was written if it is one, else an empty one.
fn object(arguments: &str) -> String {
    let is_object = serde_json::from_str::<Map<String, Value>>(arguments).is_ok();
    if is_object { arguments.to_owned() } else { "{}".to_owned() }
}
