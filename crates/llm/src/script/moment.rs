//! What a rule can look at.

use chrono::NaiveDate;
use redial_proto::{Message, Role, TurnRequest};

/// A request, seen from its end.
pub(super) struct Moment<'a> {
    pub(super) request: &'a TurnRequest,
    pub(super) last: Option<&'a Message>,
    /// The last message that a user wrote; none that Redial wrote.
    pub(super) user: Option<&'a Message>,
    /// That message and everything after it.
    pub(super) since: &'a [Message],
    /// Tool messages in there.
    pub(super) results: Vec<&'a Message>,
    pub(super) today: NaiveDate,
}

impl<'a> Moment<'a> {
    pub(super) fn of(request: &'a TurnRequest, today: NaiveDate) -> Self {
        let messages = request.messages.as_slice();
        let user = messages.iter().rposition(|message| message.role == Role::User && !message.by_redial);
        let since = &messages[user.unwrap_or(0)..];
        Self {
            request,
            last: messages.last(),
            user: user.map(|place| &messages[place]),
            since,
            results: since.iter().filter(|message| message.role == Role::Tool).collect(),
            today,
        }
    }

    /// True if the text stands anywhere since the user's message: in what was said, thought or called.
    pub(super) fn seen(&self, text: &str) -> bool {
        self.since.iter().any(|message| {
            message.content.contains(text)
                || message.thought.as_ref().is_some_and(|thought| thought.contains(text))
                || message.calls.iter().any(|call| call.tool.contains(text) || call.arguments.contains(text))
        })
    }
}
