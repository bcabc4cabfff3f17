//! Tasks and their conversations.
//!
//! [`Store::submit_tasks`] puts a task on record, [`Store::cancel_task`] asks to stop it; both only put something into
//! its inbox, as the end of a call does. [`Store::due_tasks`] says which tasks somebody has to look at, and
//! [`Store::advance`] is the one transaction that looks at them, decides and writes.

mod advance;
mod batch;
mod cancel;
mod due;
mod inbox;
mod messages;
mod origin;
mod report;
mod row;
mod start;
mod submit;
mod view;
mod write;

pub use advance::{Advanced, Advancer, TaskChange};
pub use inbox::{EndedCall, InboxItem};
pub use origin::TaskOrigin;
pub use row::TaskRow;
pub use start::StartInfo;
pub use submit::{NewTask, SubmittedTask};
pub(crate) use view::RawView;

use redial_proto::{Language, TaskId};
use redial_records::TaskCall;

/// The position of a call in a task, from its columns.
pub(crate) fn task_call(task: Option<uuid::Uuid>, turn: Option<i32>, call_index: Option<i32>) -> Option<TaskCall> {
    Some(TaskCall { task: TaskId(task?), turn: crate::uint(turn?), call_index: crate::uint(call_index?) })
}

/// A language as its column holds it.
fn language_name(language: Language) -> &'static str {
    match language {
        Language::En => "en",
        Language::Zh => "zh",
    }
}

fn language_of(name: &str) -> Result<Language, String> {
    match name {
        "en" => Ok(Language::En),
        "zh" => Ok(Language::Zh),
        other => Err(format!("{other:?} is no language; allowed: en, zh")),
    }
}
