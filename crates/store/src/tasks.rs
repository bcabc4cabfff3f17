//! Tasks and their conversations.
//!
//! [`Store::submit_tasks`] puts a task on record, [`crate::TenantStore::cancel_task`] asks to stop it; both only put something into
//! its inbox, as the end of a call does. [`Store::due_tasks`] says which tasks are to be planned, and
//! [`Store::lock_tasks`] opens the one transaction in which that happens.

mod commit;
mod due;
mod functions;
mod inbox;
mod lock;
mod messages;
mod origin;
mod report;
mod row;
mod start;
mod submit;
mod turns;
mod view;
mod write;

pub use functions::FunctionCall;
pub use lock::LockedTasks;
pub(crate) use messages::RawMessage;
pub use origin::TaskOrigin;
pub use submit::SubmittedTask;
pub(crate) use turns::leave_out_messages;
pub use turns::{AskedTurn, TurnRoom, Unexpanded};
pub(crate) use view::RawView;

use redial_proto::TaskId;
use redial_records::TaskCall;

/// Reads the position of a call in a task from its columns.
pub(crate) fn task_call(task: Option<uuid::Uuid>, turn: Option<i32>, call_index: Option<i32>) -> Option<TaskCall> {
    Some(TaskCall { task: TaskId(task?), turn: crate::uint(turn?), call_index: crate::uint(call_index?) })
}

/// Makes the error for a row that holds what this version cannot read; nothing is decided on a part of it.
fn unreadable(error: String) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}
