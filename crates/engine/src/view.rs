//! The view of a conversation that a model gets.
//!
//! What a provider would refuse cannot come out of here: the system message stands first, each call is followed by its
//! one result, arguments are JSON objects. What would be too much is shortened before anything is left out, and what is
//! left out goes as a whole: an assistant message never loses some of its results.

mod cut;
mod draft;
mod groups;
mod limits;
mod reach;
mod read;
mod size;

use std::collections::BTreeSet;

use redial_proto::{Message, StoredMessage, Trimmed};
use redial_records::ReadConversation;

use self::draft::Draft;
pub use self::limits::{Limits, whole_feedback};
pub use self::reach::{reach, read};
pub use self::read::{READ_RESULT, read_result, read_result_offer};

/// Makes the view of a conversation: without the pruned calls, within the limits, valid for every provider.
///
/// Messages older than the newest 512 KiB, or twice what the view can show if that is more, as they are stored, are
/// left out. Nothing else is changed that fits, but for tool results over [`Limits::result_bytes`]. If the whole is too
/// long, old tool results are cut to their beginnings, oldest first; then the oldest messages are left out, each
/// assistant message together with its results, which a note at the start says; then what remains is shortened, tool
/// results first. The system message, the user's newest message and the end of the conversation are always there. Only
/// if even their bare structure is over the limits, so is the view. Pure and linear; a view of a view is the same view.
///
/// With [`Trimmed::shortened`] over 0 the model should be offered [`read_result_offer`].
pub fn view(messages: &[StoredMessage], pruned: &BTreeSet<String>, limits: Limits) -> (Vec<Message>, Trimmed) {
    view_of(&ReadConversation::whole(messages.to_vec()), pruned, limits)
}

/// Makes the view of what was read of the conversation with its [`reach`].
///
/// Messages that were not read count as left out, by their sequence numbers; so does one of them that would not be in
/// the view in any case, because its call is pruned or newer instructions replaced it.
pub fn view_of(conversation: &ReadConversation, pruned: &BTreeSet<String>, limits: Limits) -> (Vec<Message>, Trimmed) {
    let (messages, trimmed) = numbered_view_of(conversation, pruned, limits);
    (messages.into_iter().map(|(_, message)| message).collect(), trimmed)
}

/// Makes the view; each message with its sequence number, 0 if it is none of the conversation.
pub fn numbered_view_of(
    conversation: &ReadConversation,
    pruned: &BTreeSet<String>,
    limits: Limits,
) -> (Vec<(u32, Message)>, Trimmed) {
    let mut draft = Draft::new(conversation, pruned, limits);
    draft.shape_results();
    draft.shorten_old_results();
    draft.leave_out_oldest();
    draft.shorten_rest();
    draft.done()
}
