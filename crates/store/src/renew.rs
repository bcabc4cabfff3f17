//! Extends leases.

use redial_proto::{CallId, JobRef, WorkerId};
use uuid::Uuid;

use crate::{Store, StoreError, int, uint};

impl Store {
    /// Extends the leases of what this worker still holds and returns that; the flag says that the call's user wants
    /// it stopped. Only `lease_until` changes, which no index holds.
    pub async fn renew(
        &self,
        worker: &WorkerId,
        running: &[JobRef],
        lease_ms: u64,
    ) -> Result<Vec<(JobRef, bool)>, StoreError> {
        let mut sorted = running.to_vec();
        sorted.sort_unstable_by_key(|job| job.call);
        let ids: Vec<Uuid> = sorted.iter().map(|job| job.call.0).collect();
        let attempts: Vec<i32> = sorted.iter().map(|job| int(job.attempt)).collect();
        let lease_ms = i64::try_from(lease_ms).unwrap_or(i64::MAX);
        let rows = self
            .run_again(|| async {
                let mut db = self.checkout().await?;
                let done = sqlx::query!(
                    "UPDATE calls c SET lease_until = clock_timestamp() + $4::bigint * interval '1 ms'
                     FROM UNNEST($1::uuid[], $2::int[]) AS i (id, attempt)
                     WHERE c.id = ANY (ARRAY[i.id]) AND c.attempt = i.attempt AND c.state = 'running' AND c.worker = $3
                     RETURNING c.id, c.attempt, c.cancel_requested",
                    &ids,
                    &attempts,
                    worker.as_str(),
                    lease_ms,
                )
                .fetch_all(&mut *db)
                .await?;
                Ok(db.done(done))
            })
            .await?;
        let held = |id, attempt| JobRef { call: CallId(id), attempt: uint(attempt) };
        Ok(rows.into_iter().map(|row| (held(row.id, row.attempt), row.cancel_requested)).collect())
    }
}
