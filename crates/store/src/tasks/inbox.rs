//! The inboxes of tasks.

use std::collections::HashSet;

use redial_proto::{CallId, CallState, Failure, TaskId};
use redial_records::{EndedCall, InboxItem, TaskRecord, Time};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{turns, unreadable};
use crate::columns::{bigint, column, uint};

/// An item of an inbox, with its id there.
pub(super) struct Received {
    pub(super) id: i64,
    pub(super) task: TaskId,
    pub(super) item: InboxItem,
}

pub(super) struct Inboxes {
    /// The database's time.
    pub(super) now: Time,
    /// In order.
    pub(super) received: Vec<Received>,
    /// Tasks with items that there was no room for.
    pub(super) left: HashSet<TaskId>,
}

/// Reads the items for these tasks, in their order as far as `room` bytes of results go, and one at least.
pub(super) async fn read(db: &mut PgConnection, tasks: &[TaskRecord], room: u64) -> Result<Inboxes, sqlx::Error> {
    let mut rows = sqlx::query_file_as!(
        RawItem,
        "sql/read_inbox.sql",
        &column(tasks, |task| task.id.0),
        &column(tasks, |task| !task.state.is_terminal()),
        bigint(room),
    )
    .fetch_all(&mut *db)
    .await?;
    let now = rows.first().map(|row| row.now).ok_or(sqlx::Error::RowNotFound)?;
    let turns = rows.iter_mut().filter_map(|row| Some((TaskId(row.task?), row.arguments.as_mut()?)));
    turns::leave_out_messages(db, turns.collect()).await?;
    let (mut received, mut left) = (Vec::new(), HashSet::new());
    for row in rows {
        let (Some(id), Some(task)) = (row.id, row.task) else { continue };
        let task = TaskId(task);
        if row.is_left == Some(true) {
            left.insert(task);
            continue;
        }
        let item = InboxItem::try_from(row).map_err(|error| unreadable(format!("item {id} of its inbox: {error}")))?;
        received.push(Received { id, task, item });
    }
    Ok(Inboxes { now, received, left })
}

/// Deletes the items of tasks that are not on record any more.
pub(super) async fn delete_orphans(db: &mut PgConnection, tasks: &[Uuid]) -> Result<(), sqlx::Error> {
    sqlx::query_file!("sql/delete_orphaned_items.sql", tasks).execute(db).await.map(|_| ())
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
    is_left: Option<bool>,
}

impl TryFrom<RawItem> for InboxItem {
    type Error = String;

    fn try_from(raw: RawItem) -> Result<Self, String> {
        match raw.kind.as_deref() {
            Some("start") => Ok(Self::Start),
            Some("cancel") => Ok(Self::Cancel),
            Some("ended") => raw.into_ended().map(Self::Ended),
            Some("retrying") => raw.into_retrying(),
            other => Err(format!("{other:?} is not a kind of item")),
        }
    }
}

impl RawItem {
    fn into_ended(self) -> Result<EndedCall, String> {
        let (call, turn, call_index) = self.position()?;
        let state = self.state.as_deref().unwrap_or_default().parse()?;
        let failure = self.failure(state)?;
        Ok(EndedCall { call, turn, call_index, state, failure, output: self.output, arguments: self.arguments })
    }

    /// Reads why the call has no output. Its effect is possible only if it is unknown whether the call did its work.
    fn failure(&self, state: CallState) -> Result<Option<Failure>, String> {
        let Some(class) = &self.class else { return Ok(None) };
        // A message is complete without its broken rules.
        let details = self.details.as_deref().and_then(|details| serde_json::from_str(details).ok());
        let failure = Failure {
            details: details.unwrap_or_default(),
            effect_possible: state == CallState::Unknown,
            ..Failure::new(class.parse()?, self.message.clone().unwrap_or_default())
        };
        Ok(Some(failure))
    }

    fn into_retrying(self) -> Result<InboxItem, String> {
        let (call, turn, call_index) = self.position()?;
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

    fn position(&self) -> Result<(CallId, u32, u32), String> {
        match (self.call, self.turn, self.call_index) {
            (Some(call), Some(turn), Some(call_index)) => Ok((CallId(call), uint(turn), uint(call_index))),
            (call, ..) => Err(format!("the call {call:?} is not on record as one of a task")),
        }
    }
}
