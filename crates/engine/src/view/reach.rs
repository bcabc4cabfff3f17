//! How far back a view reaches, and so what has to be read of a conversation for it.
//!
//! A view takes the newest bytes of a conversation into account, twice what it can show and 512 KiB at least, as they are stored; that is the one rule of
//! views here, and [`start`] states it. [`reach`] lets a reader stop earlier, where what is older cannot be shown for lack
//! of room. It must not count more for a message than a view has to spend on it, so that the view of what was read is the
//! view of the whole.

use std::collections::BTreeSet;

use redial_proto::{Message, Role, StoredMessage};
use redial_records::{Cut, Reach, ReadConversation, ReadMessage};

use super::{
    limits::{Limits, OLD_RESULT},
    size::json_length,
};

/// Bytes of a conversation, as they are stored, that any view takes into account.
const LEAST_STORED: u64 = 512 * 1024;
/// No text has more bytes for each token of its estimate.
const BYTES_PER_TOKEN: u64 = 4;
/// No message takes less in a view, in bytes, besides its texts.
const LEAST_MESSAGE: u32 = 28;

/// Returns how much of a conversation has to be read for its view.
pub fn reach(pruned: &BTreeSet<String>, limits: Limits) -> Reach {
    Reach {
        shown_bytes: shown(limits),
        stored_bytes: stored(limits),
        message_bytes: LEAST_MESSAGE,
        result_bytes: limits.result_bytes,
        old_result_bytes: limits.result_bytes.min(OLD_RESULT),
        hidden: pruned.iter().cloned().collect(),
    }
}

/// Counts the bytes of texts that a view can show.
fn shown(limits: Limits) -> u64 {
    (limits.bytes as u64).min(u64::from(limits.context_tokens) * BYTES_PER_TOKEN)
}

/// Counts the bytes of a conversation, as they are stored, that a view takes into account: it shows half of that at
/// most; the other half is for results that are shortened. With it, a turn of a conversation of any length costs the
/// same.
fn stored(limits: Limits) -> u64 {
    LEAST_STORED.max(2 * shown(limits))
}

/// Returns the position of the first message that a view takes into account.
pub(super) fn start(messages: &[ReadMessage], pruned: &BTreeSet<String>, limits: Limits) -> usize {
    let most = stored(limits);
    let (mut stored, mut end) = (0, End::default());
    for (position, read) in messages.iter().enumerate().rev() {
        let message = &read.stored.message;
        stored += stored_bytes(read);
        if end.is_reached && stored > most {
            return position + 1;
        }
        end.pass(message, message.call_id.as_ref().is_some_and(|id| pruned.contains(id)));
    }
    0
}

/// The end of a conversation on the way back from its last message. It is always shown: a user's message, or an assistant's
/// with its results.
#[derive(Default)]
struct End {
    is_reached: bool,
    /// A result was passed whose call has not been.
    has_result: bool,
}

impl End {
    fn pass(&mut self, message: &Message, is_hidden: bool) {
        self.is_reached |= match message.role {
            Role::User => true,
            Role::Assistant => self.has_result || !is_blank(&message.content),
            Role::System | Role::Tool => false,
        };
        self.has_result = message.role == Role::Tool && (self.has_result || !is_hidden);
    }
}

/// Counts the bytes of a message as it is stored.
fn stored_bytes(read: &ReadMessage) -> u64 {
    let message = &read.stored.message;
    let calls = if message.calls.is_empty() { 0 } else { json_length(&message.calls) };
    (read.content_bytes() + calls + beside_content(read)) as u64 + u64::from(LEAST_MESSAGE)
}

fn beside_content(read: &ReadMessage) -> usize {
    let message = &read.stored.message;
    message.thought.as_ref().map_or(0, String::len) + message.provider.as_ref().map_or(0, json_length)
}

/// Reads a conversation as `conversations.sql` does; for whoever has it in memory.
pub fn read(messages: &[StoredMessage], reach: &Reach) -> ReadConversation {
    let (mut shown, mut full, mut stored, mut end) = (0, 0, 0, End::default());
    let mut found = Vec::new();
    for one in messages.iter().rev().cloned().map(ReadMessage::whole) {
        let is_hidden = one.stored.message.call_id.as_ref().is_some_and(|id| reach.hidden.contains(id));
        shown += shown_bytes(&one, is_hidden, reach.old_result_bytes);
        full += shown_bytes(&one, is_hidden, reach.result_bytes);
        stored += stored_bytes(&one);
        if end.is_reached && (shown > reach.shown_bytes || stored > reach.stored_bytes) {
            break;
        }
        let is_old = end.is_reached && full > reach.shown_bytes;
        end.pass(&one.stored.message, is_hidden);
        found.push(match one.stored.message.role {
            Role::Tool if is_hidden => cut(one, 0, 0),
            Role::Tool if is_old => cut(one, reach.old_result_bytes, 0),
            Role::Tool => cut(one, reach.result_bytes, reach.result_bytes / 3),
            _ => one,
        });
    }
    let from = found.last().map_or(1, |first| first.stored.seq);
    let older =
        |kind: fn(&StoredMessage) -> bool| messages.iter().rev().find(|one| kind(one)).filter(|one| one.seq < from);
    let extra = [
        older(|one| one.message.role == Role::System),
        older(|one| one.message.role == Role::User && !one.message.by_redial),
    ];
    found.extend(extra.into_iter().flatten().cloned().map(ReadMessage::whole));
    found.sort_by_key(|one| one.stored.seq);
    ReadConversation { messages: found, from }
}

/// Returns the least that a view spends on the texts of a message, if its result is cut to so many bytes.
fn shown_bytes(read: &ReadMessage, is_hidden: bool, result_bytes: u32) -> u64 {
    let message = &read.stored.message;
    let texts = match message.role {
        Role::System => return 0,
        Role::Tool if is_hidden => return 0,
        Role::Tool => read.content_bytes().min(result_bytes as usize),
        // It goes with its calls.
        Role::Assistant if is_blank(&message.content) => return 0,
        Role::Assistant | Role::User => read.content_bytes() + beside_content(read),
    };
    texts as u64 + u64::from(LEAST_MESSAGE)
}

fn is_blank(text: &str) -> bool {
    text.trim_matches([' ', '\n', '\r', '\t']).is_empty()
}

/// Keeps so many characters of the beginning and of the end, if that is less than all.
fn cut(mut read: ReadMessage, head: u32, tail: u32) -> ReadMessage {
    let content = &mut read.stored.message.content;
    let bytes = content.len();
    if bytes <= 2 * head as usize {
        return read;
    }
    let end = content.char_indices().nth(head as usize).map_or(bytes, |(at, _)| at);
    let rest = content.char_indices().rev().take(tail as usize).last().map_or(bytes, |(at, _)| at);
    let tail = content[rest..].to_owned();
    content.truncate(end);
    read.cut = Some(Cut { bytes, tail });
    read
}
