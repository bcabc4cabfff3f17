//! Calls that are due: locked, and changed in the same transaction.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use redial_proto::CallState;
use redial_records::{CallFacts, CallRecord, RetryBucket, Time, Transition};
use sqlx::PgConnection;

use super::{
    apply::{apply, facts},
    load::RawCall,
};
use crate::{
    StoreError,
    connect::{Store, Transaction},
};

/// Due calls that are locked, with the retry budgets of the tools whose retries are due.
///
/// They stay locked until [`LockedCalls::commit`]; dropping this instead leaves everything as it was.
#[derive(Debug)]
pub struct LockedCalls {
    transaction: Transaction,
    calls: Vec<CallRecord>,
    buckets: Vec<RetryBucket>,
}

impl Store {
    /// Locks up to `limit` due calls that no other dispatcher has locked; `None` if there are none. Whoever calls this
    /// must not wait for anything until the commit.
    pub async fn lock_due_calls(&self, limit: u32) -> Result<Option<LockedCalls>, StoreError> {
        self.run(async {
            let mut transaction = self.begin().await?;
            let calls = lock_calls(&mut transaction, limit).await?;
            if calls.is_empty() {
                transaction.commit().await?;
                return Ok(None);
            }
            let buckets = lock_buckets(&mut transaction, &calls).await?;
            Ok(Some(LockedCalls { transaction, calls, buckets }))
        })
        .await
    }

    /// How long until the next call is due; negative if one is due already, `None` if nothing waits.
    pub async fn next_wake(&self) -> Result<Option<TimeDelta>, StoreError> {
        let (wake, now) = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let row = sqlx::query!(
                    r#"SELECT min(wake_at) AS wake, clock_timestamp() AS "now!" FROM calls WHERE wake_at IS NOT NULL"#
                )
                .fetch_one(&mut *db)
                .await?;
                Ok(db.done((row.wake, row.now)))
            })
            .await?;
        Ok(wake.map(|wake: Time| wake - now))
    }

    /// Makes unclaimed calls due whose job was published in this time: those jobs are lost. The first `per_second` are
    /// due now, the next a second later and so on, so that a long queue does not come back as a storm. Returns the
    /// number of calls.
    pub async fn wake_unclaimed(&self, after: Time, until: Time, per_second: u32) -> Result<u64, StoreError> {
        let mut woken = 0;
        for second in 0.. {
            let batch = self.wake_batch(after, until, per_second, second).await?;
            woken += batch;
            if batch < u64::from(per_second) {
                break;
            }
        }
        Ok(woken)
    }

    async fn wake_batch(&self, after: Time, until: Time, most: u32, second: i32) -> Result<u64, StoreError> {
        self.run_again(|| async {
            let mut db = self.checkout().await?;
            let done = sqlx::query_file!("sql/wake_unclaimed.sql", after, until, i64::from(most), second)
                .execute(&mut *db)
                .await?;
            Ok(db.done(done.rows_affected()))
        })
        .await
    }
}

impl LockedCalls {
    /// The calls, as they are while they are locked.
    pub fn calls(&self) -> &[CallRecord] {
        &self.calls
    }

    /// The retry budgets, in the order of their tools.
    pub fn buckets(&self) -> &[RetryBucket] {
        &self.buckets
    }

    /// Writes transitions and the retry tokens that are left per tool, and commits; returns what the transitions that
    /// happened left on record.
    pub async fn commit(
        mut self,
        store: &Store,
        transitions: &[Transition],
        tokens: &[(String, f64)],
    ) -> Result<Vec<CallFacts>, StoreError> {
        let rows = store
            .run_since(self.transaction.began(), async move {
                write_buckets(&mut self.transaction, tokens).await?;
                let rows = apply(&mut self.transaction, transitions).await?;
                self.transaction.commit().await?;
                Ok(rows)
            })
            .await?;
        facts(rows)
    }
}

async fn lock_calls(db: &mut PgConnection, limit: u32) -> Result<Vec<CallRecord>, sqlx::Error> {
    let rows = sqlx::query_file_as!(RawCall, "sql/lock_due_calls.sql", i64::from(limit)).fetch_all(db).await?;
    let readable =
        |row| CallRecord::try_from(row).inspect_err(|error| tracing::error!(%error, "Skipped an unreadable call"));
    Ok(rows.into_iter().filter_map(|row| readable(row).ok()).collect())
}

async fn lock_buckets(db: &mut PgConnection, calls: &[CallRecord]) -> Result<Vec<RetryBucket>, sqlx::Error> {
    let due = calls.iter().filter(|call| call.state == CallState::RetryWait);
    let tools: Vec<&str> = due.map(|call| call.tool.as_str()).collect::<BTreeSet<_>>().into_iter().collect();
    if tools.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query_file!("sql/lock_retry_budgets.sql", &tools as &[&str]).fetch_all(db).await?;
    let bucket = |tool: &str| match rows.iter().find(|row| row.tool == tool) {
        Some(row) => RetryBucket { tool: tool.to_owned(), tokens: Some(row.tokens), seconds: row.seconds },
        None => RetryBucket { tool: tool.to_owned(), tokens: None, seconds: 0.0 },
    };
    Ok(tools.into_iter().map(bucket).collect())
}

async fn write_buckets(db: &mut PgConnection, tokens: &[(String, f64)]) -> Result<(), sqlx::Error> {
    if tokens.is_empty() {
        return Ok(());
    }
    let (tools, left): (Vec<&str>, Vec<f64>) = tokens.iter().map(|(tool, left)| (tool.as_str(), *left)).unzip();
    sqlx::query_file!("sql/write_retry_budgets.sql", &tools as &[&str], &left).execute(db).await.map(|_| ())
}
