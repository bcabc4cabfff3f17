//! Redial's tables in Postgres, the only truth. No other crate of the program contains SQL.
//!
//! Everything works on batches: one statement for up to a thousand calls. A statement guards the state that it
//! expects, so that a late or doubled change does nothing. The engine plans transitions, this crate
//! writes them; only claims and heartbeats are decided by a statement.
//!
//! One verb, one file; for calls [`submit`](Store::submit), [`claim`](Store::claim), [`renew`](Store::renew),
//! [`load`](Store::load), [`apply`](Store::apply), [`lock_due_calls`](Store::lock_due_calls); for tasks
//! [`submit_tasks`](Store::submit_tasks), [`lock_tasks`](Store::lock_tasks). Questions over the history are in [`audit`],
//! sums over it in [`stats`].

#[macro_use]
mod connect;
mod actions;
pub mod admin;
pub mod audit;
mod calls;
mod clock;
mod columns;
mod dead_letters;
mod error;
mod forget;
mod health;
mod lock_watch;
mod low_water;
mod migrations;
mod on_record;
mod page_key;
mod partitions;
mod pass;
mod payloads;
mod redrives;
mod registry;
mod retention;
mod sessions;
pub mod stats;
mod streams;
mod tasks;
mod tenant;
mod tokens;
mod webhooks;

pub use actions::{ActionFilter, NewAction};
pub use calls::{
    Applied, DueCalls, Fed, Feed, Gap, Granted, Held, HeldGrant, LateReport, LockedCalls, LostGrant, MAX_FED, Position,
    Recovery, ReturnedJob, Submitted,
};
pub(crate) use columns::{int, uint};
pub use connect::{Purpose, Store, StoreConfig};
pub use dead_letters::{DeadLetter, Rejection, Rejections};
pub use error::{FullPool, StoreError};
pub use forget::{NewErasure, OpenCalls, OpenTask, Phase, Scope, Tombstone};
pub use health::LockedHealth;
pub use low_water::Mark;
pub use partitions::{Dropped, Partition};
pub use pass::Pass;
pub use payloads::OpenedArguments;
pub use redial_records::{TaskCall, Time};
pub use redrives::{Counted, CreatedRedrive, MAX_OPEN_REDRIVES, RedriveStep, RedriveWork};
pub use registry::{AcceptedTool, Forgotten, NotAccepted, Registered, WorkerHeartbeat, WorkingConsumer};
pub use retention::Pruned;
pub use sessions::SessionRecord;
pub use tasks::{AskedTurn, FunctionCall, LockedTasks, SubmittedTask, TaskOrigin, TurnRoom, Unexpanded};
pub use tenant::TenantStore;
pub use tokens::{CreatedToken, NewToken, RevokedToken, TokenFilter, TokenRecord};
pub use webhooks::{
    DeliverOutcome, DeliveryLimits, Followed, Gone, NewWebhook, PendingEvent, Rotated, WebhookChange, WebhookCreated,
    WebhookDelivery, WebhookOnRecord,
};
