//! Locks the calls that a message names, so that nothing is kept of a call that is deleted at the same time.

use std::collections::HashMap;

use uuid::Uuid;

use crate::connect::Transaction;

/// A call that a message names, and that is on record.
#[derive(Clone, Debug)]
pub(crate) struct OnRecord {
    pub(crate) tenant: String,
    pub(crate) attempt: i32,
    pub(crate) worker: Option<String>,
}

/// Locks and returns those of these calls that are on record. None of them is deleted before the transaction ends.
///
/// The caller compares in memory: a join of two lists in one statement takes time in the product of their lengths,
/// because the connections of dispatchers have no hash joins.
pub(crate) async fn lock_on_record(
    transaction: &mut Transaction,
    calls: impl Iterator<Item = Uuid>,
) -> Result<HashMap<Uuid, OnRecord>, sqlx::Error> {
    let calls: Vec<Uuid> = calls.collect();
    if calls.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query_file!("sql/lock_calls_on_record.sql", &calls).fetch_all(&mut **transaction).await?;
    let call = |tenant, attempt, worker| OnRecord { tenant, attempt, worker };
    Ok(rows.into_iter().map(|row| (row.id, call(row.tenant, row.attempt, row.worker))).collect())
}
