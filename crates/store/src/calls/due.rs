//! Calls that are due: locked, and changed in the same transaction.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use redial_proto::{CallId, CallState};
use redial_records::{CallFacts, CallRecord, Time, Transition};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{apply::apply, facts::facts, load::RawCall};
use crate::{
    StoreError,
    connect::{Store, Transaction},
    low_water::CallMarks,
};

/// A look for due calls.
#[derive(Debug)]
pub struct DueCalls {
    /// Those that decisions can be made about; `None` if there are none.
    pub locked: Option<LockedCalls>,
    /// Those that this version cannot read, which are postponed.
    pub unreadable: Vec<CallId>,
}

/// Due calls that are locked.
///
/// They stay locked until [`LockedCalls::commit`]; dropping this instead leaves everything as it was.
#[derive(Debug)]
pub struct LockedCalls {
    transaction: Transaction,
    calls: Vec<CallRecord>,
}

impl Store {
    /// Locks due calls that no other dispatcher has locked, up to `limit` of those that wait in the backlog and up to
    /// `limit` of the others. Calls whose rows cannot be read are postponed by 15 s instead, so that they keep no other call waiting; if
    /// there are no others among these, none are locked, and more may be due. `met` are calls that were found locked
    /// ([`Store::locked_due_calls`]): they are locked, too, if they are due and free now.
    /// Whoever calls this must not wait for anything until the commit.
    pub async fn lock_due_calls(&self, limit: u32, met: &[CallId]) -> Result<DueCalls, StoreError> {
        let marks = self.low_water.calls().begin(Instant::now());
        let locked = self.run(async {
            let mut transaction = self.begin().await?;
            let locked = lock_calls(&mut transaction, limit, marks, met).await?;
            let (unreadable, calls): (Vec<_>, Vec<_>) =
                locked.into_iter().partition(|call| call.state == CallState::Other);
            let unreadable: Vec<CallId> = unreadable.into_iter().map(|call| call.id).collect();
            set_aside(&mut transaction, &unreadable).await?;
            if calls.is_empty() {
                transaction.commit().await?;
                return Ok(DueCalls { locked: None, unreadable });
            }
            Ok(DueCalls { locked: Some(LockedCalls { transaction, calls }), unreadable })
        });
        // The server may be another one now.
        locked.await.inspect_err(|_| *self.low_water.calls() = CallMarks::default())
    }

    /// Returns how long until the next call is due; negative if one is due already, `None` if none is within this time.
    /// Those that were found locked are left out: looks would begin at them for as long as they are.
    pub async fn next_wake(&self, within: Duration, met: &[CallId]) -> Result<Option<TimeDelta>, StoreError> {
        let (began, met) = (Instant::now(), ids(met));
        let [others, backlog] = self.low_water.calls().begin(began);
        let row = on_connection!(self, |db| {
            let row = sqlx::query_file!("sql/next_wake.sql", others, backlog, within.as_secs_f64(), &met);
            row.fetch_one(db).await
        })?;
        self.low_water.calls().found(row.others, row.backlog, row.now, began);
        let next = [row.others, row.backlog].into_iter().flatten().min();
        Ok(next.map(|wake: Time| wake - row.now))
    }

    /// Returns calls that are due and that another transaction holds locked, besides those of `met`; up to `limit` that
    /// wait in the backlog, and up to `limit` others.
    pub async fn locked_due_calls(&self, limit: u32, met: &[CallId]) -> Result<HashSet<CallId>, StoreError> {
        let [others, backlog] = self.low_water.calls().begin(Instant::now());
        let met = ids(met);
        let due = on_connection!(self, |db| {
            sqlx::query_file_scalar!("sql/due_calls.sql", others, backlog, &met, i64::from(limit)).fetch_all(db).await
        })?;
        self.locked(&due.into_iter().map(CallId).collect::<Vec<_>>()).await
    }
}

impl LockedCalls {
    /// Returns the calls, as they are while they are locked.
    pub fn calls(&self) -> &[CallRecord] {
        &self.calls
    }

    /// Writes transitions, and commits; returns what those that happened left on record.
    pub async fn commit(mut self, store: &Store, transitions: &[Transition]) -> Result<Vec<CallFacts>, StoreError> {
        let rows = store
            .run_since(self.transaction.began(), async move {
                let rows = apply(&mut self.transaction, transitions).await?;
                self.transaction.commit().await?;
                Ok(rows)
            })
            .await?;
        Ok(facts(rows))
    }
}

async fn lock_calls(
    db: &mut PgConnection,
    limit: u32,
    [others, backlog]: [Option<Time>; 2],
    met: &[CallId],
) -> Result<Vec<CallRecord>, sqlx::Error> {
    let rows = sqlx::query_file_as!(RawCall, "sql/lock_due_calls.sql", i64::from(limit), others, backlog, &ids(met));
    Ok(rows.fetch_all(db).await?.into_iter().map(CallRecord::from).collect())
}

async fn set_aside(db: &mut PgConnection, unreadable: &[CallId]) -> Result<(), sqlx::Error> {
    if unreadable.is_empty() {
        return Ok(());
    }
    sqlx::query_file!("sql/set_aside_calls.sql", &ids(unreadable)).execute(db).await.map(|_| ())
}

fn ids(calls: &[CallId]) -> Vec<Uuid> {
    calls.iter().map(|call| call.0).collect()
}
