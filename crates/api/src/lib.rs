//! What people see: the answers of the HTTP API, each thing once. The gateway sends them, the console and the command line read
//! them, and the store fills them where what is on record is the same.
//!
//! Plain data. A reader accepts what a newer gateway sends: fields that it does not know are left out, a state that it does not know
//! is `Other`, and of an error class that it does not know there is the message. What travels between processes, too, such as
//! [`CallView`](redial_proto::CallView), is in `redial_proto`.

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
    };
}

mod actions;
mod calls;
mod conversations;
mod problem;
mod redrives;
mod rejected;
mod statistics;
mod tasks;
mod tokens;
mod tools;
mod workers;

pub use actions::{ActionItem, ActionList};
pub use calls::{CallDetails, CallItem, CallList, CallRecord, LateReport, Ran, SearchedCalls, ran};
pub use conversations::{ConversationItem, ConversationList, Erased, MessageList};
pub use problem::{ProblemDocument, ProblemField};
pub use redrives::{RedriveList, WebhookList};
pub use rejected::{RejectedEntry, RejectedItem, RejectedList};
pub use statistics::{
    AttemptCounts, CallCounts, Counts, Figures, ModelFigures, ModelStatistics, PointerItem, PointerList, Statistics,
    dollars,
};
pub use tasks::{Replay, ReplayDifference, SearchedTasks, TaskCallItem, TaskCallList, TaskList, TaskSpec, TurnView};
pub use tokens::{By, CreatedToken, TokenItem, TokenList, WhoAsks};
pub use tools::{AgentPage, Checked, ToolPage};
pub use workers::{QueueItem, QueueList, WorkerItem, WorkerList};
