//! Looks at the calls whose time has come.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use redial_proto::CallState;
use sqlx::{Connection, PgConnection};

use crate::{Applied, CallRow, Change, Store, StoreError, Time, apply::apply, load::RawCall};

/// Decides what becomes of due calls. Both methods must be quick and wait for nothing: rows are locked meanwhile.
pub trait Sweeper {
    /// A tool wants `wanted` retry tokens. Gets the tokens of its bucket (`None` for a tool without one) and the
    /// seconds since they last changed; returns the tokens that are left.
    fn spend(&mut self, tool: &str, tokens: Option<f64>, seconds: f64, wanted: u32) -> f64;

    /// What becomes of the due calls; called after `spend` for every tool with a due retry.
    fn decide(&mut self, calls: &[CallRow]) -> Vec<Change>;
}

impl Store {
    /// Takes up to `limit` due calls that no other dispatcher is looking at, lets `sweeper` say what becomes of them,
    /// and writes that, in one transaction. Returns the changes that happened, and how many calls were due.
    pub async fn sweep(&self, limit: u32, sweeper: &mut impl Sweeper) -> Result<(Vec<Applied>, usize), StoreError> {
        let work = async {
            let mut db = self.checkout().await?;
            let mut transaction = db.begin().await?;
            let calls = due_calls(&mut transaction, limit).await?;
            let applied = if calls.is_empty() {
                Vec::new()
            } else {
                spend_budgets(&mut transaction, &calls, sweeper).await?;
                let changes = sweeper.decide(&calls);
                apply(&mut transaction, &changes).await?
            };
            transaction.commit().await?;
            Ok(db.done((applied, calls.len())))
        };
        let (applied, due) = self.run(work).await?;
        Ok((applied.into_iter().map(Applied::try_from).collect::<Result<_, _>>()?, due))
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

    /// Makes unclaimed calls due whose job was published in this time: those jobs are gone. The first `per_second` are
    /// due now, the next a second later and so on, so that a long queue does not come back as a storm. Returns how many.
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
            let done = sqlx::query!(
                "UPDATE calls c
                 SET wake_at = clock_timestamp() + $4::int * interval '1 s', published_at = to_timestamp(0)
                 FROM (
                     SELECT id FROM calls
                     WHERE wake_at IS NOT NULL AND state = 'ready' AND published_at > $1 AND published_at <= $2
                     LIMIT $3 FOR UPDATE SKIP LOCKED
                 ) lost
                 WHERE c.id = lost.id",
                after,
                until,
                i64::from(most),
                second,
            )
            .execute(&mut *db)
            .await?;
            Ok(db.done(done.rows_affected()))
        })
        .await
    }
}

/// The clock is read by a subquery, or its condition could not be one of the index, which would be walked to its end.
async fn due_calls(db: &mut PgConnection, limit: u32) -> Result<Vec<CallRow>, sqlx::Error> {
    let rows = sqlx::query_as!(
        RawCall,
        r#"SELECT id, state, attempt, tool, pool, effect, retry::text, timeout_ms, traceparent, deadline_at, worker, claim_id, lease_until,
                  cancel_requested, publish_no, published_at, origin_id, clock_timestamp() AS "read_at!"
           FROM calls WHERE wake_at <= (SELECT clock_timestamp())
           ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED"#,
        i64::from(limit),
    )
    .fetch_all(db)
    .await?;
    let readable = |row| CallRow::try_from(row).inspect_err(|error| tracing::error!(%error, "a call cannot be swept"));
    Ok(rows.into_iter().filter_map(|row| readable(row).ok()).collect())
}

/// Buckets are locked in the order of their tools, after the calls, by everybody: no deadlock.
async fn spend_budgets(
    db: &mut PgConnection,
    calls: &[CallRow],
    sweeper: &mut impl Sweeper,
) -> Result<(), sqlx::Error> {
    let mut wanted = BTreeMap::<&str, u32>::new();
    for call in calls.iter().filter(|call| call.state == CallState::RetryWait) {
        *wanted.entry(&call.tool).or_default() += 1;
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let tools: Vec<&str> = wanted.keys().copied().collect();
    let buckets = sqlx::query!(
        r#"SELECT tool, tokens, extract(epoch FROM clock_timestamp() - updated_at)::double precision AS "seconds!"
           FROM retry_budgets WHERE tool = ANY($1) ORDER BY tool FOR UPDATE"#,
        &tools as &[&str],
    )
    .fetch_all(&mut *db)
    .await?;
    let left: Vec<f64> = wanted
        .iter()
        .map(|(tool, wanted)| match buckets.iter().find(|bucket| bucket.tool == **tool) {
            Some(bucket) => sweeper.spend(tool, Some(bucket.tokens), bucket.seconds, *wanted),
            None => sweeper.spend(tool, None, 0.0, *wanted),
        })
        .collect();
    sqlx::query!(
        "INSERT INTO retry_budgets (tool, tokens)
         SELECT * FROM UNNEST($1::text[], $2::double precision[])
         ON CONFLICT (tool) DO UPDATE SET tokens = EXCLUDED.tokens, updated_at = clock_timestamp()",
        &tools as &[&str],
        &left,
    )
    .execute(db)
    .await
    .map(|_| ())
}
