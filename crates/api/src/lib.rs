//! What people see: the answers of the HTTP API, each thing once. The gateway sends them, the console and the command line read
//! them, and the store fills them where what is on record is the same.
//!
//! Plain data. A reader accepts what a newer gateway sends: fields that it does not know are left out, a state that it does not know
//! is `Other`, and of an error class that it does not know there is the message. What travels between processes, too, such as
//! [`CallView`](redial_proto::CallView), is in `redial_proto`.

#![warn(missing_docs)]

use serde::de::DeserializeOwned;

/// A part of a list.
pub trait List: DeserializeOwned {
    /// What it is a list of.
    type Entry;

    /// Returns the entries of this part, and the token of the next one; that is empty at the end.
    fn into_parts(self) -> (Vec<Self::Entry>, String);
}

/// Declares a part of a list: its entries, and where the list goes on.
macro_rules! list {
    ($(#[$about:meta])* $name:ident { $(#[$order:meta])* $entries:ident: $entry:ty }) => {
        $(#[$about])*
        #[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct $name {
            $(#[$order])*
            pub $entries: Vec<$entry>,
            /// For the next page; empty at the end.
            pub next_page_token: String,
        }

        crate::parts!($name, $entries: $entry);
    };
}

/// Says what a struct is a list of, for one that says more than where it goes on.
macro_rules! parts {
    ($name:ident, $entries:ident: $entry:ty) => {
        impl crate::List for $name {
            type Entry = $entry;

            fn into_parts(self) -> (Vec<$entry>, String) {
                (self.$entries, self.next_page_token)
            }
        }
    };
}
use parts;

mod actions;
mod calls;
mod conversations;
mod events;
mod problem;
mod redrives;
mod rejected;
mod statistics;
mod tasks;
mod tokens;
mod tools;
mod workers;

pub use actions::{ActionItem, ActionList};
pub use calls::{
    CallDetails, CallItem, CallList, CallRecord, CallStanding, LateReport, Ran, SearchedCalls, WaitReply, ran,
};
pub use conversations::{ConversationItem, ConversationList, Erased, MessageList};
pub use events::{EndedItem, Missed};
pub use problem::{ProblemDocument, ProblemField};
pub use redrives::{RedriveList, WebhookList};
pub use rejected::{RejectedEntry, RejectedItem, RejectedList};
pub use statistics::{
    AttemptCounts, CallCounts, Counts, Figures, GroupBy, ModelFigures, ModelStatistics, ModelsGroupBy, PointerItem,
    PointerList, Statistics, dollars,
};
pub use tasks::{Replay, ReplayDifference, SearchedTasks, TaskCallItem, TaskCallList, TaskList, TaskSpec, TurnView};
pub use tokens::{By, CreatedToken, TokenItem, TokenList, WhoAsks};
pub use tools::{AgentPage, Checked, ToolPage};
pub use workers::{QueueItem, QueueList, WorkerItem, WorkerList};

#[cfg(test)]
mod tests {
    use redial_proto::{CallState, UserRole};

    use super::*;

    #[test]
    fn what_a_newer_gateway_says_is_read() {
        let whole = r#"{"call":"01a1f813-c80f-740d-a05c-89d86eeddd01","tool":"echo","state":"held","attempts":1,
            "submitted_at":"2026-11-20T08:00:00Z","output":null,"class":"shy","message":"not now","priority":7,
            "arguments":{"n": 1e400},"effect":"read","ran":"half","pool":"default","deadline_at":"2026-11-20T09:00:00Z",
            "cancel_requested":false}"#;
        let record: CallRecord = serde_json::from_str(whole).unwrap();
        assert_eq!((record.view.state, record.view.class, record.details.ran), (CallState::Other, None, Ran::Other));
        assert_eq!(record.view.output.as_ref().unwrap().get(), "null");
        assert_eq!(record.details.arguments.get(), r#"{"n": 1e400}"#, "as it came");
        let again = serde_json::to_string(&record).unwrap();
        assert!(again.contains(r#""arguments":{"n": 1e400},"effect":"read""#), "{again}");

        let who = r#"{"tenant":"acme","user":"alice","roles":["read","fly"],"by":"badge","expires_at":null}"#;
        let who: WhoAsks = serde_json::from_str(who).unwrap();
        assert!(who.may(UserRole::Read) && who.roles.len() == 1 && who.by == By::Other);
    }

    #[test]
    fn figures_of_calls_and_of_attempts_are_told_apart() {
        let calls = Figures {
            counts: Counts::Calls(CallCounts { calls: 3, failed: 1, ..CallCounts::default() }),
            ..Figures::default()
        };
        let attempts =
            Figures { counts: Counts::Attempts(AttemptCounts { attempts: 4, failed: 2 }), ..Figures::default() };
        for (figures, wanted) in [(calls, (3, 1)), (attempts, (0, 0))] {
            let json = serde_json::to_string(&figures).unwrap();
            let counts = serde_json::from_str::<Figures>(&json).unwrap().counts.calls();
            assert_eq!((counts.calls, counts.bad()), wanted, "{json}");
        }
    }
}
