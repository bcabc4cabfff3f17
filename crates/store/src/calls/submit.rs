//! Writes new calls.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use redial_proto::{CallId, CallState, function};
use redial_records::NewCall;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    StoreError, Time,
    columns::{bigint, clean, column, int, json_list, sparse},
    connect::Store,
};

#[derive(Clone, Debug)]
pub enum Submitted {
    Written,
    /// Another one with its key was there before, or the call was redriven before.
    Existing {
        id: CallId,
        state: CallState,
        content: Option<Uuid>,
        submitted_at: Time,
    },
    /// It was not written, because of a call that was there before and is deleted now, or because the call that it repeats is being
    /// erased.
    Gone,
    /// It was not written now, and which call was there before could not be read: with its key it may be submitted again.
    Unread(Arc<StoreError>),
}

impl Submitted {
    /// Returns why nobody knows what became of the call.
    pub fn unread(&self) -> Option<&StoreError> {
        match self {
            Self::Unread(error) => Some(error),
            Self::Written | Self::Existing { .. } | Self::Gone => None,
        }
    }
}

impl Store {
    /// Writes up to 1,000 calls in one statement and says for each what became of it, in order. Safe to repeat: a call
    /// whose id is on record already counts as written. After an error none is known to be written.
    ///
    /// `check_after_ms`: how long a job may stay unclaimed before the sweeper checks it.
    pub async fn submit(&self, calls: &[NewCall], check_after_ms: u64) -> Result<Vec<Submitted>, StoreError> {
        self.clock.check()?;
        let rows: Vec<&NewCall> = calls.iter().collect();
        if rows.iter().all(|call| is_bare(call)) {
            let written = self.run_again(|| async {
                let mut db = self.checkout().await?;
                insert_bare(&mut db, &rows, check_after_ms).await?;
                db.done(());
                Ok(())
            });
            match written.await {
                // One of them is on record: an earlier try of this batch wrote it.
                Err(error) if error.is_unique_violation() => {}
                done => return done.map(|()| vec![Submitted::Written; calls.len()]),
            }
        }
        let written = on_connection!(self, |db| insert(db, &rows, check_after_ms).await)?;
        let met: Vec<(usize, &NewCall)> =
            calls.iter().enumerate().filter(|(_, call)| !written.contains(&call.id.0)).collect();
        let mut results = vec![Submitted::Written; calls.len()];
        if met.is_empty() {
            return Ok(results);
        }
        // From here on an error is one of these calls only: the others are committed.
        let mut found = match self.existing(&met).await {
            Ok(found) => Ok(found.into_iter().collect::<HashMap<usize, Submitted>>()),
            Err(error) => Err(Arc::new(error)),
        };
        for (n, call) in met {
            let existing = match &mut found {
                Ok(found) => found.remove(&n).unwrap_or(Submitted::Gone),
                // Its id is all that it can have met, so an earlier try of this batch wrote it.
                Err(_) if call.key.is_none() && call.redrive_of.is_none() && call.task.is_none() => continue,
                Err(error) => Submitted::Unread(Arc::clone(error)),
            };
            let sent_before = matches!(existing, Submitted::Existing { id, .. } if id == call.id);
            if !sent_before {
                results[n] = existing;
            }
        }
        Ok(results)
    }

    async fn existing(&self, met: &[(usize, &NewCall)]) -> Result<Vec<(usize, Submitted)>, StoreError> {
        let numbers: Vec<i32> = met.iter().map(|(n, _)| i32::try_from(*n).unwrap_or(i32::MAX)).collect();
        let ids: Vec<Uuid> = met.iter().map(|(_, c)| c.id.0).collect();
        let tenants: Vec<&str> = met.iter().map(|(_, c)| c.tenant.as_str()).collect();
        let keys: Vec<Option<&str>> = met.iter().map(|(_, c)| c.key.as_deref()).collect();
        let redrives: Vec<Option<Uuid>> = met.iter().map(|(_, c)| c.redrive_of.map(|redrive| redrive.call.0)).collect();
        let refused: Vec<bool> = met.iter().map(|(_, c)| c.refusal.is_some()).collect();
        let contents: Vec<Option<Uuid>> = met.iter().map(|(_, c)| c.content).collect();
        let rows = on_connection!(self, |db| {
            sqlx::query_file!(
                "sql/existing.sql",
                &numbers,
                &ids,
                &tenants as &[&str],
                &keys as &[Option<&str>],
                &redrives as &[Option<Uuid>],
                &refused,
                &contents as &[Option<Uuid>],
            )
            .fetch_all(db)
            .await
        })?;
        let existing = rows.into_iter().map(|row| {
            let (id, state) = (CallId(row.id), CallState::shown(&row.state));
            let existing = Submitted::Existing { id, state, content: row.content, submitted_at: row.submitted_at };
            (usize::try_from(row.n).unwrap_or(usize::MAX), existing)
        });
        Ok(existing.collect())
    }
}

/// True if the row of a call is all that is written of it, and nothing but its id can be on record before.
fn is_bare(call: &NewCall) -> bool {
    call.key.is_none()
        && call.redrive_of.is_none()
        && call.task.is_none()
        && call.refusal.is_none()
        && call.pool != function::POOL
}

/// Writes bare calls, none of which may be on record.
async fn insert_bare(db: &mut PgConnection, calls: &[&NewCall], check_after_ms: u64) -> Result<(), sqlx::Error> {
    let insert = sqlx::query_file!(
        "sql/submit_bare.sql",
        bigint(check_after_ms),
        &column(calls, |c| c.id.0),
        &column(calls, |c| c.tool.as_str()) as &[&str],
        &column(calls, |c| c.pool.as_str()) as &[&str],
        &column(calls, |c| c.effect.as_str()) as &[&str],
        &column(calls, |c| c.tenant.as_str()) as &[&str],
        &sparse(calls, |c| c.content) as &[Option<Uuid>],
        &sparse(calls, |c| c.conversation.as_deref()) as &[Option<&str>],
        &column(calls, |c| c.arguments.as_str()) as &[&str],
        &sparse(calls, |c| json_list(&c.repairs)) as &[Option<String>],
        &column(calls, |c| bigint(c.timeout_ms)),
        &sparse(calls, |c| c.retry.as_ref().and_then(|retry| serde_json::to_string(retry).ok())) as &[Option<String>],
        &column(calls, |c| c.notify),
        &sparse(calls, |c| c.traceparent.as_deref()) as &[Option<&str>],
        &column(calls, |c| bigint(c.deadline_ms)),
        &sparse(calls, |c| c.consumer.as_deref()) as &[Option<&str>],
        &sparse(calls, |c| json_list(&c.undeclared)) as &[Option<String>],
        &sparse(calls, |c| c.help.as_ref().and_then(|help| serde_json::to_string(help).ok())) as &[Option<String>],
        &sparse(calls, |c| c.submitted_by.as_deref()) as &[Option<&str>],
        &sparse(calls, |c| c.tool_version) as &[Option<Uuid>],
    );
    insert.execute(db).await.map(|_| ())
}

/// Writes calls and returns the ids of those that were not on record.
pub(crate) async fn insert(
    db: &mut PgConnection,
    calls: &[&NewCall],
    check_after_ms: u64,
) -> Result<HashSet<Uuid>, sqlx::Error> {
    let rows = sqlx::query_file_scalar!(
        "sql/submit.sql",
        bigint(check_after_ms),
        &column(calls, |c| c.id.0),
        &column(calls, |c| c.tool.as_str()) as &[&str],
        &column(calls, |c| c.pool.as_str()) as &[&str],
        &column(calls, |c| c.effect.as_str()) as &[&str],
        &column(calls, |c| c.tenant.as_str()) as &[&str],
        &sparse(calls, |c| c.key.as_deref()) as &[Option<&str>],
        &sparse(calls, |c| c.content) as &[Option<Uuid>],
        &sparse(calls, |c| c.conversation.as_deref()) as &[Option<&str>],
        &column(calls, |c| c.arguments.as_str()) as &[&str],
        &sparse(calls, |c| json_list(&c.repairs)) as &[Option<String>],
        &column(calls, |c| bigint(c.timeout_ms)),
        &sparse(calls, |c| c.retry.as_ref().and_then(|retry| serde_json::to_string(retry).ok())) as &[Option<String>],
        &column(calls, |c| c.notify),
        &sparse(calls, |c| c.traceparent.as_deref()) as &[Option<&str>],
        &column(calls, |c| bigint(c.deadline_ms)),
        &sparse(calls, |c| c.refusal.as_ref().map(|refusal| refusal.class.as_str())) as &[Option<&str>],
        &sparse(calls, |c| c.refusal.as_ref().map(|refusal| clean(&refusal.message))) as &[Option<String>],
        &sparse(calls, |c| c.refusal.as_ref().and_then(|refusal| json_list(&refusal.details))) as &[Option<String>],
        &sparse(calls, |c| c.redrive_of.map(|redrive| redrive.call.0)) as &[Option<Uuid>],
        &sparse(calls, |c| c.redrive_of.map(|redrive| redrive.origin.0)) as &[Option<Uuid>],
        &sparse(calls, |c| c.task.map(|task| task.task.0)) as &[Option<Uuid>],
        &sparse(calls, |c| c.task.map(|task| int(task.turn))) as &[Option<i32>],
        &sparse(calls, |c| c.task.map(|task| int(task.call_index))) as &[Option<i32>],
        &sparse(calls, |c| c.consumer.as_deref()) as &[Option<&str>],
        &sparse(calls, |c| json_list(&c.undeclared)) as &[Option<String>],
        &sparse(calls, |c| c.help.as_ref().and_then(|help| serde_json::to_string(help).ok())) as &[Option<String>],
        &sparse(calls, |c| c.submitted_by.as_deref()) as &[Option<&str>],
        function::POOL,
        &sparse(calls, |c| c.tool_version) as &[Option<Uuid>],
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().collect())
}
