//! Writes decisions: changes of calls, and the attempts they end.

use redial_proto::{CallId, CallState, ClaimId, ErrorClass, TaskId, WorkerId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{Reason, Store, StoreError, Time, clean, int, uint};

/// What a call must still be for a change to happen.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Its state.
    pub state: CallState,
    /// Its attempt.
    pub attempt: u32,
    /// Who runs it, if that matters: the second half of the fence.
    pub worker: Option<WorkerId>,
    /// The claim that it was granted to, if that matters: a released attempt is granted again under the same number.
    pub claim: Option<ClaimId>,
    /// Whether its user wants it stopped, if the decision depended on that.
    pub cancel_requested: Option<bool>,
}

/// One decision to write.
#[derive(Clone, Debug)]
pub struct Change {
    /// The call.
    pub call: CallId,
    /// The guard.
    pub expected: Expected,
    /// The new state.
    pub state: CallState,
    /// The new number of attempts started.
    pub attempt: u32,
    /// When somebody has to look at it again; `None` leaves that as it is. An ended call needs no look.
    pub wake_at: Option<Time>,
    /// A job is about to be published: counts it.
    pub publish: bool,
    /// The user wants it stopped.
    pub cancel: bool,
    /// Why it ended, if it did without success.
    pub why: Option<(ErrorClass, String)>,
    /// The attempt that this ends.
    pub ended: Option<EndedAttempt>,
}

/// An attempt for the audit.
#[derive(Clone, Debug, Default)]
pub struct EndedAttempt {
    /// How long the tool ran, in ms, if its worker said so.
    pub duration_ms: Option<u64>,
    /// Why it failed. `None` is a success.
    pub failure: Option<Reason>,
    /// When the next attempt is planned.
    pub retry_at: Option<Time>,
    /// The tool's result: valid JSON. Exactly one of this and `failure`.
    pub output: Option<String>,
}

/// A change that happened, with what the dispatcher needs to act on it.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The call.
    pub call: CallId,
    /// Attempts started.
    pub attempt: u32,
    /// The tool's name.
    pub tool: String,
    /// The tool's pool.
    pub pool: String,
    /// How often its job was published, this time included.
    pub publish_no: u32,
    /// W3C trace context of the submission.
    pub traceparent: Option<String>,
    /// Its user wants an event at the end.
    pub notify: bool,
    /// Who runs it, or ran it last.
    pub worker: Option<WorkerId>,
    /// When the call was accepted.
    pub submitted_at: Time,
    /// When the change happened.
    pub at: Time,
    /// Size of the arguments in bytes, if a job is to be published.
    pub bytes: u32,
    /// The task that was told of the change: one of its calls ended or will be repeated.
    pub task: Option<TaskId>,
}

impl Store {
    /// Writes changes, one per call at most, in one statement; returns those that happened.
    pub async fn apply(&self, changes: &[Change]) -> Result<Vec<Applied>, StoreError> {
        let applied = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let applied = apply(&mut db, changes).await?;
                Ok(db.done(applied))
            })
            .await?;
        applied.into_iter().map(Applied::try_from).collect()
    }
}

pub(crate) struct RawApplied {
    id: Uuid,
    attempt: i32,
    tool: String,
    pool: String,
    publish_no: i32,
    traceparent: Option<String>,
    notify: bool,
    worker: Option<String>,
    submitted_at: Time,
    at: Time,
    bytes: i32,
    told_task: Option<Uuid>,
}

impl TryFrom<RawApplied> for Applied {
    type Error = StoreError;

    fn try_from(raw: RawApplied) -> Result<Self, StoreError> {
        Ok(Self {
            call: CallId(raw.id),
            attempt: uint(raw.attempt),
            tool: raw.tool,
            pool: raw.pool,
            publish_no: uint(raw.publish_no),
            traceparent: raw.traceparent,
            notify: raw.notify,
            worker: raw.worker.map(|worker| worker.parse()).transpose().map_err(StoreError::BadData)?,
            submitted_at: raw.submitted_at,
            at: raw.at,
            bytes: uint(raw.bytes),
            task: raw.told_task.map(TaskId),
        })
    }
}

pub(crate) async fn apply(db: &mut PgConnection, changes: &[Change]) -> Result<Vec<RawApplied>, sqlx::Error> {
    let mut sorted: Vec<&Change> = changes.iter().collect();
    sorted.sort_unstable_by_key(|change| change.call);
    let ms = |span: u64| i64::try_from(span).unwrap_or(i64::MAX);
    sqlx::query_file_as!(
        RawApplied,
        "sql/apply.sql",
        &column(&sorted, |c| c.call.0),
        &column(&sorted, |c| c.expected.state.as_str()) as &[&str],
        &column(&sorted, |c| int(c.expected.attempt)),
        &column(&sorted, |c| c.expected.worker.as_ref().map(WorkerId::as_str)) as &[Option<&str>],
        &column(&sorted, |c| c.expected.cancel_requested) as &[Option<bool>],
        &column(&sorted, |c| c.state.as_str()) as &[&str],
        &column(&sorted, |c| int(c.attempt)),
        &column(&sorted, |c| c.state.is_terminal()),
        &column(&sorted, |c| c.wake_at) as &[Option<Time>],
        &column(&sorted, |c| c.publish),
        &column(&sorted, |c| c.cancel),
        &column(&sorted, |c| c.why.as_ref().map(|why| why.0.as_str())) as &[Option<&str>],
        &column(&sorted, |c| c.why.as_ref().map(|why| clean(&why.1))) as &[Option<String>],
        &column(&sorted, |c| c.ended.is_some()),
        &column(&sorted, |c| ended(c).and_then(|ended| ended.duration_ms).map(ms)) as &[Option<i64>],
        &column(&sorted, |c| failure(c).map(|failure| failure.class.as_str())) as &[Option<&str>],
        &column(&sorted, |c| failure(c).map(|failure| clean(&failure.message))) as &[Option<String>],
        &column(&sorted, |c| failure(c).and_then(|failure| failure.details.as_deref())) as &[Option<&str>],
        &column(&sorted, |c| ended(c).and_then(|ended| ended.retry_at)) as &[Option<Time>],
        &column(&sorted, |c| ended(c).and_then(|ended| ended.output.as_deref())) as &[Option<&str>],
        &column(&sorted, |c| c.expected.claim.map(|claim| claim.0)) as &[Option<Uuid>],
    )
    .fetch_all(db)
    .await
}

fn ended(change: &Change) -> Option<&EndedAttempt> {
    change.ended.as_ref()
}

fn failure(change: &Change) -> Option<&Reason> {
    ended(change)?.failure.as_ref()
}

fn column<'a, T>(changes: &[&'a Change], field: impl Fn(&'a Change) -> T) -> Vec<T> {
    changes.iter().map(|change| field(change)).collect()
}
