//! A task as decisions about it need it, and how its row is locked.

use redial_proto::{Language, StoredMessage, TaskId, TaskState};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{InboxItem, StartInfo, language_of};
use crate::{Time, uint};

/// A task with all that a decision about it needs.
#[derive(Clone, Debug)]
pub struct TaskRow {
    /// The task.
    pub id: TaskId,
    /// Scope of its conversation.
    pub tenant: String,
    /// Its conversation.
    pub conversation: String,
    /// Where it stands: `waiting` or `running`.
    pub state: TaskState,
    /// The agent's name, unless it was given with the task.
    pub agent: Option<String>,
    /// Language of what is said to its model.
    pub language: Language,
    /// The whole agent, as JSON.
    pub spec: String,
    /// What the user wants.
    pub input: String,
    /// The state machine as of its last step, as JSON. `None` until it starts.
    pub progress: Option<String>,
    /// Number of its last step; 0 before the first.
    pub last_step: u32,
    /// When somebody has to look at it, whatever comes in. Its time has come if this is not later than `now`.
    pub wake_at: Option<Time>,
    /// W3C trace context of the submission.
    pub traceparent: Option<String>,
    /// When it was accepted.
    pub submitted_at: Time,
    /// The time of this transaction, by the database's clock.
    pub now: Time,
    /// What came in, in order.
    pub inbox: Vec<InboxItem>,
    /// The conversation so far, if [`super::Advancer::wants_messages`] said so.
    pub messages: Vec<StoredMessage>,
    /// Set if it waits and may start now; never together with a cancel in the inbox: such a task ends without a word
    /// in its conversation.
    pub start: Option<StartInfo>,
}

struct RawTask {
    id: Uuid,
    tenant: String,
    conversation: String,
    state: String,
    agent: Option<String>,
    language: String,
    spec: String,
    input: String,
    progress: Option<String>,
    last_step: i32,
    wake_at: Option<Time>,
    traceparent: Option<String>,
    submitted_at: Time,
}

impl TryFrom<RawTask> for TaskRow {
    type Error = String;

    fn try_from(raw: RawTask) -> Result<Self, String> {
        Ok(Self {
            id: TaskId(raw.id),
            tenant: raw.tenant,
            conversation: raw.conversation,
            state: raw.state.parse()?,
            agent: raw.agent,
            language: language_of(&raw.language)?,
            spec: raw.spec,
            input: raw.input,
            progress: raw.progress,
            last_step: uint(raw.last_step),
            wake_at: raw.wake_at,
            traceparent: raw.traceparent,
            submitted_at: raw.submitted_at,
            now: raw.submitted_at,
            inbox: Vec::new(),
            messages: Vec::new(),
            start: None,
        })
    }
}

/// Locks tasks in the order of their ids, which keeps deadlocks rare, and reads them as they are once they are locked.
/// A task that this version cannot read is left out, loudly.
pub(super) async fn lock(db: &mut PgConnection, ids: &[Uuid], wait: bool) -> Result<Vec<TaskRow>, sqlx::Error> {
    let rows = if wait {
        sqlx::query_file_as!(RawTask, "sql/lock_tasks.sql", ids).fetch_all(db).await?
    } else {
        sqlx::query_file_as!(RawTask, "sql/lock_free_tasks.sql", ids).fetch_all(db).await?
    };
    let readable = |row: RawTask| {
        let id = row.id;
        TaskRow::try_from(row).inspect_err(|error| tracing::error!(task = %id, error, "a task cannot be read")).ok()
    };
    Ok(rows.into_iter().filter_map(readable).collect())
}
