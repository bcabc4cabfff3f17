//! What came in for tasks.

use std::collections::HashSet;

use redial_proto::{CallId, CallState, ErrorClass, TaskId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{Time, uint};

/// Something that came in for a task.
#[derive(Clone, Debug)]
pub enum InboxItem {
    /// It was submitted, or the task before it in its conversation has ended.
    Start,
    /// Its user wants it stopped.
    Cancel,
    /// A call of it is over.
    Ended(EndedCall),
    /// An attempt of a call of it failed and will be repeated.
    Retrying {
        /// The call.
        call: CallId,
        /// The turn that asked for it.
        turn: u32,
        /// Its place in that turn; 0 is the model itself.
        call_index: u32,
        /// The tool's name, or the model's registered one.
        tool: String,
        /// The attempt that failed.
        attempt: u32,
        /// Why.
        class: ErrorClass,
        /// The same in words.
        message: String,
        /// When the next attempt is due.
        next_at: Time,
    },
}

/// A call that is over.
#[derive(Clone, Debug)]
pub struct EndedCall {
    /// The call.
    pub call: CallId,
    /// The turn that asked for it, from 1.
    pub turn: u32,
    /// Its place in that turn; 0 is the model itself.
    pub call_index: u32,
    /// How it ended.
    pub state: CallState,
    /// Why it has no result.
    pub class: Option<ErrorClass>,
    /// The same in words.
    pub message: Option<String>,
    /// Broken rules: a JSON list of [`redial_proto::FieldError`].
    pub details: Option<String>,
    /// Its result, to the letter, in state `succeeded`.
    pub output: Option<String>,
    /// What a model was asked, as JSON; for call_index 0 only.
    pub arguments: Option<String>,
}

/// An item of the inbox, and where it stands there.
pub(super) struct Received {
    pub(super) id: i64,
    pub(super) task: TaskId,
    pub(super) item: InboxItem,
}

/// What came in for these tasks, in order, and the database's time. An item that this version cannot read stays where
/// it is, loudly, and so do those after it: a task must not go on without what it was told.
pub(super) async fn read(db: &mut PgConnection, tasks: &[Uuid]) -> Result<(Time, Vec<Received>), sqlx::Error> {
    let rows = sqlx::query_file_as!(RawItem, "sql/read_inbox.sql", tasks).fetch_all(db).await?;
    let now = rows.first().map(|row| row.now).ok_or(sqlx::Error::RowNotFound)?;
    let mut unreadable = HashSet::new();
    let mut received = Vec::new();
    for row in rows {
        let (Some(id), Some(task)) = (row.id, row.task) else { continue };
        if unreadable.contains(&task) {
            continue;
        }
        match InboxItem::try_from(row) {
            Ok(item) => received.push(Received { id, task: TaskId(task), item }),
            Err(error) => {
                tracing::error!(%task, item = id, error, "the inbox of a task cannot be read");
                unreadable.insert(task);
            }
        }
    }
    Ok((now, received))
}

/// Throws away what came in for tasks that are not on record any more.
pub(super) async fn forget_orphans(db: &mut PgConnection, tasks: &[Uuid]) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "DELETE FROM task_inbox i
         WHERE i.task_id = ANY ($1) AND (SELECT t.id FROM tasks t WHERE t.id = i.task_id) IS NULL",
        tasks,
    )
    .execute(db)
    .await
    .map(|_| ())
}

struct RawItem {
    now: Time,
    id: Option<i64>,
    task: Option<Uuid>,
    kind: Option<String>,
    call: Option<Uuid>,
    attempt: Option<i32>,
    attempt_class: Option<String>,
    attempt_message: Option<String>,
    next_at: Option<Time>,
    turn: Option<i32>,
    call_index: Option<i32>,
    tool: Option<String>,
    state: Option<String>,
    class: Option<String>,
    message: Option<String>,
    details: Option<String>,
    output: Option<String>,
    arguments: Option<String>,
}

impl TryFrom<RawItem> for InboxItem {
    type Error = String;

    fn try_from(raw: RawItem) -> Result<Self, String> {
        match raw.kind.as_deref() {
            Some("start") => Ok(Self::Start),
            Some("cancel") => Ok(Self::Cancel),
            Some("ended") => raw.into_ended().map(Self::Ended),
            Some("retrying") => raw.into_retrying(),
            other => Err(format!("{other:?} is no kind of item")),
        }
    }
}

impl RawItem {
    fn into_ended(self) -> Result<EndedCall, String> {
        let (call, turn, call_index) = self.place()?;
        Ok(EndedCall {
            call,
            turn,
            call_index,
            state: self.state.as_deref().unwrap_or_default().parse()?,
            class: self.class.map(|class| class.parse()).transpose()?,
            message: self.message,
            details: self.details,
            output: self.output,
            arguments: self.arguments,
        })
    }

    fn into_retrying(self) -> Result<InboxItem, String> {
        let (call, turn, call_index) = self.place()?;
        Ok(InboxItem::Retrying {
            call,
            turn,
            call_index,
            tool: self.tool.unwrap_or_default(),
            attempt: uint(self.attempt.unwrap_or_default()),
            class: self.attempt_class.as_deref().unwrap_or_default().parse()?,
            message: self.attempt_message.unwrap_or_default(),
            next_at: self.next_at.ok_or("a retry without its time")?,
        })
    }

    fn place(&self) -> Result<(CallId, u32, u32), String> {
        match (self.call, self.turn, self.call_index) {
            (Some(call), Some(turn), Some(call_index)) => Ok((CallId(call), uint(turn), uint(call_index))),
            (call, ..) => Err(format!("the call {call:?} is not on record as one of a task")),
        }
    }
}
