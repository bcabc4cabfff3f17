//! The conditions' view of a request.

use chrono::NaiveDate;
use redial_proto::{Message, Role, TurnRequest};

/// A request with the parts that rules refer to.
pub(super) struct Context<'a> {
    pub(super) request: &'a TurnRequest,
    pub(super) last: Option<&'a Message>,
    /// The last message that a user wrote, not Redial.
    pub(super) user: Option<&'a Message>,
    /// The user's message and everything after it.
    pub(super) since: &'a [Message],
    /// The tool messages in `since`.
    pub(super) results: Vec<&'a Message>,
    pub(super) today: NaiveDate,
}

impl<'a> Context<'a> {
    pub(super) fn of(request: &'a TurnRequest, today: NaiveDate) -> Self {
        let messages = request.messages.as_slice();
        let user = messages.iter().rposition(|message| message.role == Role::User && !message.by_redial);
        let since = &messages[user.unwrap_or(0)..];
        Self {
            request,
            last: messages.last(),
            user: user.map(|index| &messages[index]),
            since,
            results: since.iter().filter(|message| message.role == Role::Tool).collect(),
            today,
        }
    }

    /// True if the text occurs since the user's message, in any text, thought or call.
    pub(super) fn seen(&self, text: &str) -> bool {
        self.since.iter().any(|message| {
            message.content.contains(text)
                || message.thought.as_ref().is_some_and(|thought| thought.contains(text))
                || message.calls.iter().any(|call| call.tool.contains(text) || call.arguments.contains(text))
        })
    }
}
