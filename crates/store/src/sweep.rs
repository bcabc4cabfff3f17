//! Looks at the calls whose time has come.

use chrono::TimeDelta;
use sqlx::Connection;

use crate::{Applied, CallRow, Change, Store, StoreError, Time, apply::apply, load::RawCall};

impl Store {
    /// Takes up to `limit` due calls that no other dispatcher is looking at, lets `decide` say what becomes of them,
    /// and writes that, in one transaction. `decide` must be quick and wait for nothing: rows are locked meanwhile.
    /// Returns the changes that happened, and how many calls were due.
    pub async fn sweep(
        &self,
        limit: u32,
        decide: impl Fn(&[CallRow]) -> Vec<Change>,
    ) -> Result<(Vec<Applied>, usize), StoreError> {
        let mut bad = None;
        let (applied, due) = self
            .run(async |db| {
                let mut transaction = db.begin().await?;
                let rows = sqlx::query_as!(
                    RawCall,
                    r#"SELECT id, state, attempt, tool, pool, effect, retry::text, deadline_at, worker, lease_until,
                              cancel_requested, publish_no, published_at, origin_id, clock_timestamp() AS "read_at!"
                       FROM calls WHERE wake_at <= clock_timestamp()
                       ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED"#,
                    i64::from(limit),
                )
                .fetch_all(&mut *transaction)
                .await?;
                let due = rows.len();
                let mut calls = Vec::with_capacity(due);
                for row in rows {
                    match CallRow::try_from(row) {
                        Ok(call) => calls.push(call),
                        Err(error) => bad = Some(error),
                    }
                }
                let changes = decide(&calls);
                let applied = if changes.is_empty() { Vec::new() } else { apply(&mut transaction, &changes).await? };
                transaction.commit().await?;
                Ok((applied, due))
            })
            .await?;
        if let Some(error) = bad {
            tracing::error!(%error, "a call cannot be swept");
        }
        Ok((applied.into_iter().map(Applied::try_from).collect::<Result<_, _>>()?, due))
    }

    /// How long until the next call is due; negative if one is due already, `None` if nothing waits.
    pub async fn next_wake(&self) -> Result<Option<TimeDelta>, StoreError> {
        let (wake, now) = self
            .run_again(async |db| {
                let row = sqlx::query!(
                    r#"SELECT min(wake_at) AS wake, clock_timestamp() AS "now!" FROM calls WHERE wake_at IS NOT NULL"#
                )
                .fetch_one(db)
                .await?;
                Ok((row.wake, row.now))
            })
            .await?;
        Ok(wake.map(|wake: Time| wake - now))
    }

    /// Makes every unclaimed call due now whose job was published between two points in time: the jobs of that time
    /// are gone. Returns how many.
    pub async fn wake_unclaimed(&self, from: Time, until: Time) -> Result<u64, StoreError> {
        self.run_again(async |db| {
            let done = sqlx::query!(
                "UPDATE calls SET wake_at = clock_timestamp(), published_at = to_timestamp(0)
                 WHERE wake_at IS NOT NULL AND state = 'ready' AND published_at BETWEEN $1 AND $2",
                from,
                until,
            )
            .execute(db)
            .await?;
            Ok(done.rows_affected())
        })
        .await
    }
}
