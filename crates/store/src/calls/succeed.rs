//! Writes successes, which are most of what is written of calls.

use redial_proto::{CallId, CallState, ClaimId, WorkerId};
use redial_records::{Change, EndedAttempt, Guard, Transition};
use sqlx::PgConnection;
use uuid::Uuid;

use super::facts::RawFacts;
use crate::columns::{bigint, column, int, sparse};

/// A running attempt that ends its call as succeeded, whatever else is on record of the call.
pub(super) struct Success<'a> {
    call: CallId,
    attempt: u32,
    worker: &'a WorkerId,
    claim: ClaimId,
    duration_ms: Option<u64>,
    output: &'a str,
}

impl<'a> Success<'a> {
    /// Reads a transition; `None` for every other one.
    pub(super) fn of(transition: &'a Transition) -> Option<Self> {
        let Guard {
            state: CallState::Running,
            attempt,
            worker: Some(worker),
            claim: Some(claim),
            cancel_requested: None,
        } = &transition.guard
        else {
            return None;
        };
        match &transition.change {
            Change::End {
                state: CallState::Succeeded,
                failure: None,
                attempt: Some(EndedAttempt { duration_ms, result: Ok(output) }),
            } => Some(Self {
                call: transition.call,
                attempt: *attempt,
                worker,
                claim: *claim,
                duration_ms: *duration_ms,
                output,
            }),
            _ => None,
        }
    }
}

pub(super) async fn succeed(db: &mut PgConnection, successes: &[Success<'_>]) -> Result<Vec<RawFacts>, sqlx::Error> {
    // Every statement locks calls in the order of their ids, which keeps deadlocks rare.
    let mut rows: Vec<&Success<'_>> = successes.iter().collect();
    rows.sort_unstable_by_key(|row| row.call);
    let ids: Vec<Uuid> = column(&rows, |row| row.call.0);
    sqlx::query_file_as!(
        RawFacts,
        "sql/succeed.sql",
        &ids,
        &column(&rows, |row| int(row.attempt)),
        &column(&rows, |row| row.worker.as_str()) as &[&str],
        &column(&rows, |row| row.claim.0),
        &sparse(&rows, |row| row.duration_ms.map(bigint)) as &[Option<i64>],
        &column(&rows, |row| row.output) as &[&str],
    )
    .fetch_all(db)
    .await
}
