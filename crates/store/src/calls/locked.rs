//! Calls that another transaction holds locked: statements about many calls leave them out, so that one of them delays no other.

use std::collections::HashSet;

use redial_proto::CallId;
use uuid::Uuid;

use crate::{StoreError, connect::Store};

impl Store {
    /// Returns which of these calls a statement leaves out: those that are still locked since one timed out.
    pub(super) async fn avoided(&self, calls: &[CallId]) -> Result<HashSet<CallId>, StoreError> {
        self.locked(&self.locks.among(calls)).await
    }

    /// Adds those of these calls that are locked, after a statement about them timed out; false if there are none but
    /// those that it left out: something else is locked, and the same statement would only wait for it again.
    pub(super) async fn adds_locked(&self, calls: &[CallId], locked: &mut HashSet<CallId>) -> Result<bool, StoreError> {
        let before = locked.len();
        let found = self.locked(calls).await?;
        self.locks.met(&found);
        locked.extend(found);
        Ok(locked.len() > before)
    }

    /// Returns which of these calls another transaction holds locked now.
    pub async fn locked(&self, calls: &[CallId]) -> Result<HashSet<CallId>, StoreError> {
        if calls.is_empty() {
            return Ok(HashSet::new());
        }
        let ids: Vec<Uuid> = calls.iter().map(|call| call.0).collect();
        let rows = on_connection!(self, |db| sqlx::query_file!("sql/locked_calls.sql", &ids).fetch_all(db).await)?;
        Ok(rows.into_iter().map(|row| CallId(row.id)).collect())
    }
}
