//! Writes transitions of calls, and the attempts that they end.

use redial_proto::{Failure, WorkerId};
use redial_records::{Backlog, CallFacts, Change, EndedAttempt, Time, Transition};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    facts::{RawFacts, facts},
    succeed::{Success, succeed},
};
use crate::{
    StoreError,
    columns::{bigint, clean, column, int, json_list, sparse},
    connect::Store,
};

impl Store {
    /// Writes transitions, one per call at most, in one statement; returns what those that happened left on record.
    pub async fn apply(&self, transitions: &[Transition]) -> Result<Vec<CallFacts>, StoreError> {
        let successes: Option<Vec<Success<'_>>> = transitions.iter().map(Success::of).collect();
        let rows = on_connection!(self, |db| {
            let rows = match &successes {
                Some(successes) => succeed(&mut *db, successes).await?,
                None => apply(&mut *db, transitions).await?,
            };
            Ok(rows)
        })?;
        Ok(facts(rows))
    }
}

pub(super) async fn apply(db: &mut PgConnection, transitions: &[Transition]) -> Result<Vec<RawFacts>, sqlx::Error> {
    // Every statement locks calls in the order of their ids, which keeps deadlocks rare.
    let mut rows: Vec<Row<'_>> = transitions.iter().map(Row::new).collect();
    rows.sort_unstable_by_key(|row| row.transition.call);
    let ids = column(&rows, |row| row.transition.call.0);
    sqlx::query_file_as!(
        RawFacts,
        "sql/apply.sql",
        &ids,
        &column(&rows, |row| row.transition.guard.state.as_str()) as &[&str],
        &column(&rows, |row| int(row.transition.guard.attempt)),
        &sparse(&rows, |row| row.transition.guard.worker.as_ref().map(WorkerId::as_str)) as &[Option<&str>],
        &sparse(&rows, |row| row.transition.guard.claim.map(|claim| claim.0)) as &[Option<Uuid>],
        &sparse(&rows, |row| row.transition.guard.cancel_requested) as &[Option<bool>],
        &column(&rows, |row| row.transition.state().as_str()) as &[&str],
        &column(&rows, |row| int(row.transition.attempt())),
        &column(&rows, |row| row.transition.state().is_terminal()),
        &sparse(&rows, |row| row.wake_at) as &[Option<Time>],
        &sparse(&rows, |row| row.deadline_at) as &[Option<Time>],
        &column(&rows, |row| row.backlog.is_some()),
        &column(&rows, |row| row.backlog == Some(Backlog::Retry)),
        &column(&rows, |row| row.cancel),
        &sparse(&rows, |row| row.failure.map(|failure| failure.class.as_str())) as &[Option<&str>],
        &sparse(&rows, |row| row.failure.map(|failure| clean(&failure.message))) as &[Option<String>],
        &column(&rows, |row| row.ended.is_some()),
        &sparse(&rows, |row| row.ended.and_then(|ended| ended.duration_ms).map(bigint)) as &[Option<i64>],
        &sparse(&rows, |row| row.ended_failure().map(|failure| failure.class.as_str())) as &[Option<&str>],
        &sparse(&rows, |row| row.ended_failure().map(|failure| clean(&failure.for_the_record())))
            as &[Option<String>],
        &sparse(&rows, |row| row.ended_failure().and_then(|failure| json_list(&failure.details)))
            as &[Option<String>],
        &sparse(&rows, |row| row.retry_at) as &[Option<Time>],
        &sparse(&rows, Row::output) as &[Option<&str>],
        &sparse(&rows, |row| row.answered_by) as &[Option<&str>],
    )
    .fetch_all(db)
    .await
}

/// What a change writes.
struct Row<'a> {
    transition: &'a Transition,
    /// When the sweeper checks it next; `None` leaves that as it is. An ended call is never due.
    wake_at: Option<Time>,
    deadline_at: Option<Time>,
    backlog: Option<Backlog>,
    cancel: bool,
    failure: Option<&'a Failure>,
    ended: Option<&'a EndedAttempt>,
    retry_at: Option<Time>,
    /// Who answered, instead of a worker.
    answered_by: Option<&'a str>,
}

impl<'a> Row<'a> {
    fn new(transition: &'a Transition) -> Self {
        let same = Self {
            transition,
            wake_at: None,
            deadline_at: None,
            backlog: None,
            cancel: false,
            failure: None,
            ended: None,
            retry_at: None,
            answered_by: None,
        };
        match &transition.change {
            Change::Wait { backlog, check_at, .. } => {
                Self { backlog: Some(*backlog), wake_at: Some(*check_at), ..same }
            }
            Change::Extend { deadline_at } => {
                Self { deadline_at: Some(*deadline_at), wake_at: Some(*deadline_at), ..same }
            }
            Change::Postpone { wake_at } => Self { wake_at: Some(*wake_at), ..same },
            Change::RequestCancel => Self { cancel: true, ..same },
            Change::Retry { attempt, due_at } => {
                Self { wake_at: Some(*due_at), retry_at: Some(*due_at), ended: Some(attempt), ..same }
            }
            Change::Answer { by, attempt } => {
                Self { failure: attempt.result.as_ref().err(), ended: Some(attempt), answered_by: Some(by), ..same }
            }
            Change::End { failure, attempt, .. } => Self { failure: failure.as_ref(), ended: attempt.as_ref(), ..same },
        }
    }

    fn ended_failure(&self) -> Option<&'a Failure> {
        self.ended?.result.as_ref().err()
    }

    fn output(&self) -> Option<&'a str> {
        self.ended?.result.as_deref().ok()
    }
}
