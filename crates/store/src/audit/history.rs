//! Lists of calls, newest first.

use redial_api::CallItem;
use redial_proto::{CallId, CallState, ErrorClass};
use uuid::Uuid;

use super::Filter;
use crate::{Store, StoreError, Time, columns::uint, retention::first_id_after};

/// Ids may have been made up to ten minutes before or after the time of submission, which decides.
const SPREAD: chrono::TimeDelta = chrono::TimeDelta::minutes(20);

/// One step through the calls, newest first.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub calls: Vec<FoundCall>,
    /// The calls that were looked at, newest first.
    pub looked: Vec<CallId>,
    /// The last call that was looked at: the next step begins before it. `None` if there was none.
    pub last: Option<CallId>,
    /// No call is left before it.
    pub ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundCall {
    pub call: CallId,
    /// When it was accepted.
    pub submitted_at: Time,
    /// From submission to end, in ms; `None` if it has not ended.
    pub total_ms: Option<i64>,
}

struct RawFound {
    call: Uuid,
    submitted_at: Time,
    total_ms: Option<i64>,
}

impl Store {
    /// Looks at the next `limit` calls and returns those that match.
    ///
    /// Every field of a filter has its index: `class` is set on all that ended without success, `wake_at` on all that has
    /// not ended, workers are in the attempts, and ids sort by time.
    pub async fn find_calls(&self, filter: &Filter, limit: u32) -> Result<Found, StoreError> {
        let Some(worker) = &filter.worker else {
            let calls = self.matching(filter, None, limit).await?;
            let last = calls.last().map(|found| found.call);
            let looked = calls.iter().map(|found| found.call).collect();
            return Ok(Found { looked, ended: calls.len() < limit as usize, last, calls });
        };
        let looked = self.calls_of_worker(worker, filter, limit).await?;
        let last = looked.last().copied().map(CallId);
        let calls = if looked.is_empty() { Vec::new() } else { self.matching(filter, Some(&looked), limit).await? };
        let ended = looked.len() < limit as usize;
        Ok(Found { looked: looked.into_iter().map(CallId).collect(), ended, last, calls })
    }

    /// Returns lines of the history, newest first; calls that are not on record are left out.
    pub async fn call_lines(&self, calls: &[CallId]) -> Result<Vec<CallItem>, StoreError> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let ids = uuids(calls);
        let rows = on_connection!(self, |db| sqlx::query_file!("sql/history_lines.sql", &ids).fetch_all(db).await)?;
        let mut lines = Vec::with_capacity(rows.len());
        for row in rows {
            lines.push(CallItem {
                call: CallId(row.call),
                tool: row.tool,
                state: CallState::shown(&row.state),
                class: known(row.class.as_deref()),
                message: row.message,
                attempts: uint(row.attempts),
                submitted_at: row.submitted_at,
                finished_at: row.finished_at,
                total_ms: row.total_ms,
                next_attempt_at: row.next_attempt_at,
                conversation: row.conversation,
                key: row.key,
                last_worker: row.last_worker,
                redriven_as: row.redriven_as.map(CallId),
            });
        }
        Ok(lines)
    }

    /// Returns the newest calls that a filter lets through.
    pub async fn history(&self, filter: &Filter, limit: u32) -> Result<Vec<CallItem>, StoreError> {
        let (mut filter, mut calls) = (filter.clone(), Vec::new());
        loop {
            let left = limit.saturating_sub(u32::try_from(calls.len()).unwrap_or(limit));
            let found = self.find_calls(&filter, filter.step(left)).await?;
            calls.extend(found.calls.iter().map(|found| found.call));
            if found.ended || calls.len() >= limit as usize {
                calls.truncate(limit as usize);
                return self.call_lines(&calls).await;
            }
            filter.before = found.last;
        }
    }

    async fn matching(
        &self,
        filter: &Filter,
        among: Option<&[Uuid]>,
        limit: u32,
    ) -> Result<Vec<FoundCall>, StoreError> {
        let rows = on_connection!(self, |db| {
            sqlx::query_file_as!(
                RawFound,
                "sql/history.sql",
                filter.tool.as_deref(),
                filter.state.map(CallState::as_str),
                filter.class.map(ErrorClass::as_str),
                filter.since,
                since_id(filter.since),
                filter.conversation.as_deref(),
                filter.key.as_deref(),
                filter.before.map(|before| before.0),
                i64::from(limit),
                filter.tenant.as_deref().or(filter.key.as_ref().map(|_| "default")),
                filter.task.map(|task| task.0),
                filter.until,
                until_id(filter.until),
                among,
            )
            .fetch_all(db)
            .await
        })?;
        let found =
            |RawFound { call, submitted_at, total_ms }| FoundCall { call: CallId(call), submitted_at, total_ms };
        Ok(rows.into_iter().map(found).collect())
    }

    pub(super) async fn calls_of_worker(
        &self,
        worker: &str,
        filter: &Filter,
        limit: u32,
    ) -> Result<Vec<Uuid>, StoreError> {
        on_connection!(self, |db| {
            sqlx::query_file_scalar!(
                "sql/calls_of_worker.sql",
                worker,
                filter.before.map(|before| before.0),
                since_id(filter.since),
                until_id(filter.until),
                i64::from(limit),
            )
            .fetch_all(db)
            .await
        })
    }
}

/// Reads a class that this version knows. Another one is left out: the message says what it is.
pub(super) fn known(class: Option<&str>) -> Option<ErrorClass> {
    class?.parse().ok()
}

/// Returns an id that no call submitted then or later is below.
pub(super) fn since_id(since: Option<Time>) -> Option<Uuid> {
    since.map(|since| first_id_after(since - SPREAD))
}

/// Returns an id that every call submitted before is below.
pub(super) fn until_id(until: Option<Time>) -> Option<Uuid> {
    until.map(first_id_after)
}

pub(super) fn uuids(calls: &[CallId]) -> Vec<Uuid> {
    calls.iter().map(|call| call.0).collect()
}
