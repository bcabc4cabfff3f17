//! What is on record of calls and tasks, and how it may change.
//!
//! Plain data that the engine, the store and the dispatcher share: the engine turns a record and an event into a
//! transition, the store turns records and transitions into SQL, the dispatcher carries out effects. Nothing here
//! decides anything.

pub mod call;
pub mod conversation;
pub mod effect;
pub mod task;
pub mod tool;
pub mod transition;
pub mod turn;

pub use call::{Backlog, BacklogPart, CallContent, CallRecord, Claim, NewCall, Redrive, TaskCall};
pub use conversation::{Cut, Reach, ReadConversation, ReadMessage};
pub use effect::{Effect, OutgoingJob};
pub use task::{EndedCall, InboxItem, NewTask, StartInfo, TaskOutcome, TaskRecord, TaskStatus, TaskTransition};
pub use tool::{Judgement, LiveConsumer, ToolHealth, ToolOnRecord};
pub use transition::{CallFacts, Change, EndedAttempt, Guard, Transition};
pub use turn::{TurnOnRecord, TurnTools};

/// A point in time; always by the database's clock in production.
pub type Time = chrono::DateTime<chrono::Utc>;
