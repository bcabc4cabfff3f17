//! The one transaction in which tasks go on: lock them, take what came in, decide, write.

use redial_proto::{CallId, Message, TaskCode, TaskId, TaskState, TaskStep, Usage};
use sqlx::{Connection, PgConnection};

use super::{TaskRow, batch::Batch, write};
use redial_records::NewCall;

use crate::{Store, StoreError, Time};

/// Decides about tasks. Both methods must be quick and wait for nothing, because rows are locked meanwhile; and a
/// batch that lost a race is decided again from its start, so they must not act before [`Store::advance`] returns.
pub trait Advancer {
    /// True if the decision needs the messages of the conversation. Asked once before each [`Advancer::advance`].
    fn wants_messages(&mut self, task: &TaskRow) -> bool;

    /// What becomes of a task. `None` leaves the task and all that came in for it as they are: it stays due. What came
    /// in is taken from the inbox only together with a change.
    fn advance(&mut self, task: TaskRow) -> Option<TaskChange>;
}

/// One decision about a task. It replaces the whole state of the task; what it lists is added.
#[derive(Clone, Debug)]
pub struct TaskChange {
    /// The task.
    pub id: TaskId,
    /// Its new state.
    pub state: TaskState,
    /// The state machine, as JSON; `null` if it never started.
    pub progress: String,
    /// When somebody has to look at it again, whatever comes in. An ended task needs no look.
    pub wake_at: Option<Time>,
    /// Why it ended; set if, and only if, the state is terminal.
    pub code: Option<TaskCode>,
    /// The same in words, unless it succeeded.
    pub message: Option<String>,
    /// What the model answered at last.
    pub answer: Option<String>,
    /// Model turns so far.
    pub turns: u32,
    /// Tool calls that were run so far.
    pub tool_calls: u32,
    /// Corrections so far.
    pub corrections: u32,
    /// What all turns cost so far.
    pub usage: Usage,
    /// New messages, each with its place in the conversation.
    pub messages: Vec<(u32, Message)>,
    /// What came in and what was decided, numbered on from [`TaskRow::last_step`].
    pub steps: Vec<TaskStep>,
    /// New calls of the task, the refused ones included.
    pub calls: Vec<NewCall>,
    /// Calls to stop, by turn and call_index.
    pub cancel: Vec<(u32, u32)>,
}

/// A change that is on record, with what there is to do about it now.
#[derive(Clone, Debug)]
pub struct Advanced {
    /// The change, as it was decided.
    pub change: TaskChange,
    /// The calls to stop that have not ended.
    pub stop: Vec<CallId>,
    /// If it ended: the task whose turn it is now in its conversation; it has been told.
    pub next: Option<TaskId>,
}

impl Store {
    /// Advances tasks that have something in their inbox or whose time has come, in one transaction; the others are
    /// left alone. Tasks that another transaction works on are waited for, or left out unless `wait`.
    ///
    /// `check_after_ms`: how long the job of a new call may stay unclaimed before the sweeper looks at it.
    ///
    /// A batch that Postgres refuses for what one of its tasks holds is taken apart, so that the others go on.
    pub async fn advance(
        &self,
        tasks: &[TaskId],
        wait: bool,
        check_after_ms: u64,
        advancer: &mut impl Advancer,
    ) -> Result<Vec<Advanced>, StoreError> {
        let error = match self.advance_together(tasks, wait, check_after_ms, advancer).await {
            Err(error) if tasks.len() > 1 && !error.is_transient() => error,
            done => return done,
        };
        tracing::warn!(%error, tasks = tasks.len(), "tasks cannot be advanced together");
        let mut done = Vec::new();
        for task in tasks {
            match self.advance_together(&[*task], wait, check_after_ms, advancer).await {
                Ok(one) => done.extend(one),
                Err(error) => tracing::error!(%error, %task, "a task cannot be advanced"),
            }
        }
        Ok(done)
    }

    async fn advance_together(
        &self,
        tasks: &[TaskId],
        wait: bool,
        check_after_ms: u64,
        advancer: &mut impl Advancer,
    ) -> Result<Vec<Advanced>, StoreError> {
        let mut tries = 0;
        loop {
            let work = async {
                let mut db = self.checkout().await?;
                let mut transaction = db.begin().await?;
                let written = advance(&mut transaction, tasks, wait, check_after_ms, advancer).await?;
                transaction.commit().await?;
                Ok(db.done(written))
            };
            match self.run(work).await {
                Err(error) if error.is_transient() && tries < 3 => {
                    tries += 1;
                    tracing::debug!(%error, tries, "deciding about the tasks again");
                }
                done => return done,
            }
        }
    }
}

async fn advance(
    db: &mut PgConnection,
    tasks: &[TaskId],
    wait: bool,
    check_after_ms: u64,
    advancer: &mut impl Advancer,
) -> Result<Vec<Advanced>, sqlx::Error> {
    let mut batch = Batch::lock(db, tasks, wait).await?;
    batch.load_messages(db, advancer).await?;
    let decided = batch.decide(advancer)?;
    write::all(db, decided, check_after_ms).await
}
