//! Writes transitions of calls, and the attempts that they end.

use std::{borrow::Cow, collections::HashSet};

use redial_proto::{CallId, Failure, WorkerId};
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

/// What became of transitions that were not to wait for locks.
#[derive(Debug, Default)]
pub struct Applied {
    /// What those that happened left on record.
    pub facts: Vec<CallFacts>,
    /// Calls that another transaction holds locked: nothing was done about them.
    pub locked: HashSet<CallId>,
}

impl Store {
    /// Writes transitions like [`Store::apply`], but for calls that stay locked, which delay no others.
    pub async fn apply_unlocked(&self, transitions: &[Transition]) -> Result<Applied, StoreError> {
        let calls: Vec<CallId> = transitions.iter().map(|one| one.call).collect();
        let mut locked = self.avoided(&calls).await?;
        loop {
            let free =
                if locked.is_empty() { Cow::Borrowed(transitions) } else { Cow::Owned(without(transitions, &locked)) };
            if free.is_empty() {
                return Ok(Applied { facts: Vec::new(), locked });
            }
            let may_pass = |error: &StoreError| error.is_transient() && !error.is_timeout();
            match self.apply_if(may_pass, &free).await {
                Ok(facts) => return Ok(Applied { facts, locked }),
                Err(error) if error.is_lock_timeout() && self.adds_locked(&calls, &mut locked).await? => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes transitions, one per call at most, in one statement; returns what those that happened left on record.
    pub async fn apply(&self, transitions: &[Transition]) -> Result<Vec<CallFacts>, StoreError> {
        self.apply_if(StoreError::is_transient, transitions).await
    }

    async fn apply_if(
        &self,
        may_pass: impl Fn(&StoreError) -> bool,
        transitions: &[Transition],
    ) -> Result<Vec<CallFacts>, StoreError> {
        let successes: Option<Vec<Success<'_>>> = transitions.iter().map(Success::of).collect();
        let rows = self.run_again_if(may_pass, || async {
            let mut db = self.checkout().await?;
            let rows = match &successes {
                Some(successes) => succeed(&mut db, successes).await?,
                None => apply(&mut db, transitions).await?,
            };
            Ok(db.done(rows))
        });
        Ok(facts(rows.await?))
    }
}

fn without(transitions: &[Transition], locked: &HashSet<CallId>) -> Vec<Transition> {
    transitions.iter().filter(|one| !locked.contains(&one.call)).cloned().collect()
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
